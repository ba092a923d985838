//! The checks of the specification: what each demands, of which revisions, how it is seen, and whether a server
//! holds to it. Pure. What is sent for them beyond the census is decided in `plan`; `inquiry` asks it.

mod baseline;
mod documents;
mod evaluate;
mod heard;
mod id;
mod markdown;
mod odd;
mod own;
pub mod plan;
mod rule;
mod score;
mod situation;
mod status;
mod table;

pub use baseline::{BadLine, Baseline, Compared};
pub use evaluate::{Checked, Discovery, discovered, evaluate, speaking};
pub use id::CheckId;
pub use markdown::markdown;
pub use own::Own;
pub use rule::{Level, Part, Revision, Rule};
pub use score::{Line, Readiness, Score, Server, Tally};
pub use status::{Missing, Outside, Status};
pub use table::rules;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_a_rule_and_stands_in_its_place() {
        let listed: Vec<CheckId> = rules().map(|it| it.id).collect();
        assert_eq!(listed, CheckId::ALL);
        for &id in CheckId::ALL {
            assert_eq!(id.rule().id, id);
        }
        let numbers: Vec<u8> = rules().map(|it| it.number).collect();
        assert!(numbers.is_sorted());
        assert!((1..=86).all(|number| numbers.contains(&number)));
    }

    #[test]
    fn what_costs_nothing_comes_with_what_was_asked_before() {
        for rule in rules() {
            assert!(rule.first <= rule.last, "{}", rule.id);
            assert_eq!(rule.is_intrusive(), rule.number >= 70, "{}", rule.id);
            if rule.part == Part::Opening {
                assert_eq!(rule.cost, 0, "{}", rule.id);
            }
            for text in [
                rule.id.about(),
                rule.seen,
                rule.remedy,
                rule.position.unwrap_or("."),
            ] {
                assert!(
                    text.ends_with('.') && text.is_ascii(),
                    "{}: {text}",
                    rule.id
                );
            }
        }
    }

    #[test]
    fn the_committed_table_is_what_the_types_say() {
        let want = markdown();
        let kept = include_str!("../../data/checks.md");
        assert!(kept == want, "write this to data/checks.md:\n{want}");
    }
}
