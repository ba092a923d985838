//! Whose platform a site is on: tenants of one hosting platform are sites of their own, and share its fate.
//! Sites themselves are `target`'s affair.

use std::net::IpAddr;

use psl::{Psl, Type};

/// The operator of a site: its registrable domain with only the registries' own suffixes counted as public, so
/// that `tenant.vercel.app` is `vercel.app`. An address, and a name under one of `suffixes`, is its own operator.
#[must_use]
pub fn operator<'a>(site: &'a str, suffixes: &[String]) -> &'a str {
    let is_address = site
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
        .is_ok();
    let is_added = suffixes.iter().any(|suffix| {
        site.strip_suffix(suffix.as_str())
            .is_some_and(|before| before.ends_with('.'))
    });
    if is_address || is_added {
        return site;
    }
    let mut name = site;
    loop {
        let Some(suffix) = psl::List.suffix(name.as_bytes()) else {
            return site;
        };
        let length = suffix.as_bytes().len();
        if suffix.typ() != Some(Type::Private) {
            // The label before a registry's suffix is what was registered.
            let Some(before) = site[..site.len() - length].strip_suffix('.') else {
                return site;
            };
            return &site[before.rfind('.').map_or(0, |dot| dot + 1)..];
        }
        // The suffix of a platform: look for a registry's inside it.
        let private = &name[name.len() - length..];
        let Some((_, inside)) = private.split_once('.') else {
            return site;
        };
        name = inside;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_shares_its_platforms_operator() {
        let added = ["demo.test".to_owned()];
        for (site, want) in [
            ("example.com", "example.com"),
            ("example.co.uk", "example.co.uk"),
            ("tenant.vercel.app", "vercel.app"),
            ("vercel.app", "vercel.app"),
            ("tenant.workers.dev", "workers.dev"),
            ("tenant.github.io", "github.io"),
            ("x.us-east-1.elasticbeanstalk.com", "elasticbeanstalk.com"),
            ("op1.test", "op1.test"),
            ("tenant.demo.test", "tenant.demo.test"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("localhost", "localhost"),
            ("com", "com"),
            ("", ""),
        ] {
            assert_eq!(operator(site, &added), want, "{site}");
        }
    }

    proptest::proptest! {
        #[test]
        fn an_operator_is_the_end_of_its_site(site in "[a-z.]{0,20}") {
            proptest::prop_assert!(site.ends_with(operator(&site, &[])));
        }
    }
}
