//! Enums whose names are spelt once: the CSV columns, the tables, `--help` and the README all come from here.
//! It says nothing of what the names mean; each enum does that where it is declared.

/// Declares a fieldless enum with a `name()` per variant, an `ALL` table in declaration order,
/// `about()` (the variant's own documentation) and the way back from a name.
macro_rules! names {
    ($(#[$meta:meta])* pub enum $enum:ident { $( #[doc = $about:literal] $variant:ident = $name:literal, )+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $enum { $( #[doc = $about] $variant, )+ }

        #[allow(clippy::allow_attributes, dead_code, reason = "not every enum is read back or listed")]
        impl $enum {
            /// Every variant, in the order of declaration.
            pub const ALL: &[Self] = &[ $( Self::$variant, )+ ];

            /// The name as it is written in every output.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// What the name means, in a sentence.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $( Self::$variant => $about, )+ }.trim()
            }

            /// The variant of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl serde::Serialize for $enum {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $enum {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(from)?;
                Self::named(&name).ok_or_else(|| {
                    serde::de::Error::custom(format_args!("{name:?} is no {}", stringify!($enum)))
                })
            }
        }
    };
}
pub(crate) use names;
