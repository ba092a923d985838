//! The arithmetic of a report: how sure a share is, and where a distribution stands.
//! What is counted, and over what, is `tally`'s affair.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// The 97.5 % quantile of the standard normal distribution: 2.5 % are left out at either end.
const Z: f64 = 1.959_963_984_540_054;

/// The ends of an interval, as fractions of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The 95 % score interval of a share (Wilson, JASA 22 (1927) 209). `None` where there is nothing to take a share of.
///
/// Unlike the textbook interval around the share itself it stays within 0 and 1, and says something of a
/// share that is 0 or 1.
#[must_use]
pub fn wilson(count: u64, total: u64) -> Option<Interval> {
    if total == 0 {
        return None;
    }
    let share = float(count.min(total)) / float(total);
    let interval = wilson_sized(share, float(total));
    Some(Interval {
        // At the ends the formula is exactly 0 or 1, and floating point is not.
        low: if count == 0 { 0.0 } else { interval.low },
        high: if count >= total { 1.0 } else { interval.high },
    })
}

/// The same interval of a share that comes from as much as a simple sample of size `n` would be worth.
#[must_use]
pub fn wilson_sized(share: f64, n: f64) -> Interval {
    if n <= 0.0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let spread = Z * Z / n;
    let centre = share + spread / 2.0;
    let reach = Z * (share * (1.0 - share) / n + spread / (4.0 * n)).sqrt();
    let end = |at: f64| (at / (1.0 + spread)).clamp(0.0, 1.0);
    Interval {
        low: end(centre - reach),
        high: end(centre + reach),
    }
}

/// By how much the normal quantile falls short of Student's with so many degrees of freedom, as a factor: 1 for
/// many, 0.154 for one. Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5) from three on, exact below.
#[must_use]
pub fn normal_to_student(freedom: usize) -> f64 {
    let student = match freedom {
        0 => return 0.0,
        1 => 12.706_204_736_174_698,
        2 => 4.302_652_729_749_464,
        _ => {
            let v = float(freedom as u64);
            let z2 = Z * Z;
            let first = (z2 + 1.0) / 4.0;
            let second = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
            let third = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
            Z * (1.0 + first / v + second / (v * v) + third / (v * v * v))
        }
    };
    Z / student
}

/// `count` as a fraction of `total`, 0 where there is no total.
#[must_use]
pub fn fraction(count: u64, total: u64) -> f64 {
    if total == 0 {
        0.0
    } else {
        float(count) / float(total)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a census of more than 2^53 rows is not to be feared"
)]
pub(crate) const fn float(count: u64) -> f64 {
    count as f64
}

/// Texts in their order, told apart in sixteen hexadecimal digits.
#[must_use]
pub fn fingerprint<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let hex = |out: String, byte: &u8| format!("{out}{byte:02x}");
    hash.finalize().iter().take(8).fold(String::new(), hex)
}

/// By how much a share has fallen beyond what chance explains, of the same things: the lower end of the 95 % interval
/// of the difference of paired shares, as a fraction; less than 0 where chance explains all of it.
#[must_use]
pub fn fall_beyond_noise(gained: u64, lost: u64, of: u64) -> f64 {
    if of == 0 {
        return 0.0;
    }
    let (gained, lost, of) = (float(gained), float(lost), float(of));
    let fall = (lost - gained) / of;
    let spread = ((lost + gained - (lost - gained).powi(2) / of).max(0.0)).sqrt() / of;
    fall - Z * spread
}

/// The nearest-rank percentile of a histogram: the smallest value that at least `percent` of a hundred
/// observations do not exceed. Always a value that was observed.
#[must_use]
pub fn percentile(histogram: &BTreeMap<u64, u64>, percent: u8) -> Option<u64> {
    let total: u64 = histogram.values().sum();
    let rank = (total * u64::from(percent.min(100))).div_ceil(100).max(1);
    let mut passed = 0;
    histogram.iter().find_map(|(&value, &count)| {
        passed += count;
        (passed >= rank).then_some(value)
    })
}

/// How likely a difference between two shares of separate samples is to be chance: the two-sided p of the pooled
/// two-proportion z test. `None` where either is a share of nothing.
#[must_use]
pub fn two_proportions(one: (u64, u64), other: (u64, u64)) -> Option<f64> {
    if one.1 == 0 || other.1 == 0 {
        return None;
    }
    let pooled = fraction(one.0 + other.0, one.1 + other.1);
    let spread = (pooled * (1.0 - pooled) * (1.0 / float(one.1) + 1.0 / float(other.1))).sqrt();
    if spread == 0.0 {
        return Some(1.0);
    }
    let z = (fraction(one.0, one.1) - fraction(other.0, other.1)) / spread;
    Some(two_sided(z))
}

/// How likely it is to be chance that of the same things `gained` came to be something and `lost` ceased to be it
/// (McNemar): exact, by the binomial distribution, up to 1,000 changes, and by its normal approximation beyond.
#[must_use]
pub fn mcnemar(gained: u64, lost: u64) -> f64 {
    const EXACT: u64 = 1000;
    let (few, all) = (gained.min(lost), gained + lost);
    if all == 0 {
        return 1.0;
    }
    if all > EXACT {
        let z = (float(gained.abs_diff(lost)) - 1.0).max(0.0) / float(all).sqrt();
        return two_sided(z);
    }
    // Terms of the binomial distribution in logarithms: 2^-1000 is still a number, its parts are not.
    let mut term = -float(all) * std::f64::consts::LN_2;
    let mut tail = term.exp();
    for taken in 0..few {
        term += (float(all - taken) / float(taken + 1)).ln();
        tail += term.exp();
    }
    (2.0 * tail).min(1.0)
}

/// The two-sided tail of the standard normal distribution (Abramowitz and Stegun 26.2.17, good to 7.5e-8).
fn two_sided(z: f64) -> f64 {
    const B: [f64; 5] = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let z = z.abs();
    let t = 1.0 / 0.231_641_9_f64.mul_add(z, 1.0);
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let sum = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (2.0 * density * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: u64, total: u64, low: f64, high: f64) {
        let got = wilson(count, total).unwrap();
        assert!(
            (got.low - low).abs() < 5e-5 && (got.high - high).abs() < 5e-5,
            "{count} of {total}: {got:?}"
        );
    }

    #[test]
    fn an_interval_is_what_the_formula_gives_by_hand() {
        // 6 of 1,100: centre (0.0054545 + 0.0017461) / 1.0034922, reach 0.0046898 / 1.0034922.
        check(6, 1100, 0.0025, 0.0118);
        // 1 of 2: centre 0.5, reach 1.95996 * sqrt(0.125 + 0.2401) / 2.92073.
        check(1, 2, 0.0945, 0.9055);
        // 0 of n ends at z^2 / (n + z^2); n of n mirrors it.
        check(0, 10, 0.0, 0.2775);
        check(10, 10, 0.7225, 1.0);
        // The interval of the survey literature's favourite example, 15 of 148.
        check(15, 148, 0.0624, 0.1605);
    }

    #[test]
    fn a_difference_is_as_unlikely_as_the_books_say() {
        let near = |got: f64, want: f64| assert!((got - want).abs() < 5e-5, "{got}, not {want}");
        near(two_sided(1.959_963_985), 0.05);
        near(two_sided(0.0), 1.0);
        // 45 of 100 against 30 of 100: z = 0.15 / sqrt(0.375 * 0.625 * 0.02) = 2.19089.
        near(two_proportions((45, 100), (30, 100)).unwrap(), 0.028_46);
        assert_eq!(two_proportions((0, 0), (1, 2)), None);
        assert_eq!(two_proportions((3, 3), (5, 5)), Some(1.0));
        // 1 against 9: 2 * (1 + 10) / 1024.
        near(mcnemar(1, 9), 0.021_484);
        near(mcnemar(9, 1), 0.021_484);
        near(mcnemar(5, 5), 1.0);
        near(mcnemar(0, 0), 1.0);
        // Where the exact and the approximate meet they agree: z = 79 / sqrt(1001) = 2.49695.
        assert!((mcnemar(540, 460) - mcnemar(541, 460)).abs() < 2e-3);
    }

    #[test]
    fn a_fall_is_what_is_left_of_it_beyond_noise() {
        // 40 of 1,000 lost, none gained: 0.04 - 1.95996 * sqrt(40 - 1.6) / 1000 = 0.04 - 0.012145.
        assert!((fall_beyond_noise(0, 40, 1000) - 0.027_855).abs() < 5e-6);
        assert!(fall_beyond_noise(38, 40, 1000) < 0.0);
        assert!(fall_beyond_noise(0, 1, 10) < 0.0);
        assert!(fall_beyond_noise(0, 0, 0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_fingerprint_tells_where_one_text_ends() {
        let of = |texts: &[&str]| fingerprint(texts.iter().copied());
        assert_eq!(of(&["a", "b"]).len(), 16);
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
    }

    #[test]
    fn a_few_sites_are_less_sure_than_many() {
        // Student's 97.5 % quantiles by the tables.
        for (freedom, quantile) in [
            (1, 12.7062),
            (2, 4.3027),
            (3, 3.1824),
            (5, 2.5706),
            (30, 2.0423),
        ] {
            let got = Z / normal_to_student(freedom);
            assert!((got - quantile).abs() < 0.03, "{freedom}: {got}");
        }
    }

    #[test]
    fn nothing_has_no_share() {
        assert_eq!(wilson(0, 0), None);
        assert_eq!(percentile(&BTreeMap::new(), 50), None);
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        // Of 15, 20, 35, 40, 50 the 30th percentile is the 2nd (1.5 rounded up), the 40th the 2nd, the 50th the 3rd.
        let five: BTreeMap<u64, u64> = [15, 20, 35, 40, 50].map(|it| (it, 1)).into();
        for (percent, want) in [
            (0, 15),
            (5, 15),
            (30, 20),
            (40, 20),
            (50, 35),
            (99, 50),
            (100, 50),
        ] {
            assert_eq!(percentile(&five, percent), Some(want), "p{percent}");
        }
        let heavy = BTreeMap::from([(1, 98), (1000, 2)]);
        assert_eq!(
            [50, 90, 98, 99].map(|it| percentile(&heavy, it)),
            [Some(1), Some(1), Some(1), Some(1000)]
        );
    }

    proptest::proptest! {
        #[test]
        fn a_share_lies_in_its_interval(total in 1_u64..2_000_000, part in 0.0_f64..=1.0) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of total")]
            let count = (float(total) * part) as u64;
            let Interval { low, high } = wilson(count, total).unwrap();
            let share = fraction(count, total);
            proptest::prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
        }
    }
}
