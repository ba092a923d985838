//! A scan fitted to the machine it runs on: its file descriptors, and how its memory is laid out.

use crate::resolve::{QUESTION_SOCKETS, QUESTIONS};

use super::say;

/// Requests in flight from which on most of them wait at any moment.
#[cfg(target_os = "linux")]
const MOSTLY_WAITING: usize = 2_000;

/// What this machine's file descriptors allow.
pub(super) struct Fits {
    /// Requests in flight.
    pub(super) width: usize,
    /// Names being looked up.
    pub(super) questions: usize,
}

/// Fits a width to this machine. The limit of its file descriptors is raised as far as it goes.
pub(super) fn fitting(width: usize) -> Fits {
    let fits = within_files(width);
    #[cfg(target_os = "linux")]
    if fits.width > MOSTLY_WAITING {
        // Half of the buffers of a connection that waits is never touched, and a huge page holds it all the same: a
        // quarter of the memory of 5,000. A narrow scan is some 5 % faster with them. Where it is refused, both fit.
        let _ = nix::sys::prctl::set_thp_disable(true);
    }
    fits
}

fn within_files(width: usize) -> Fits {
    /// For the run's files, and what the runtime holds.
    const OURS: usize = 64;
    let questions = QUESTIONS.min(width);
    let wanted = width + questions * QUESTION_SOCKETS + OURS;
    let limit = rlimit::increase_nofile_limit(u64::try_from(wanted).unwrap_or(u64::MAX));
    let limit = limit.map_or(wanted, |it| usize::try_from(it).unwrap_or(usize::MAX));
    if limit >= wanted {
        return Fits { width, questions };
    }
    let questions = questions.min(limit / 8).max(16);
    let fits = limit
        .saturating_sub(questions * QUESTION_SOCKETS + OURS)
        .max(16);
    if fits < width {
        say(&format!(
            "{limit} open files allow {fits} requests in flight, not {width}; raise the limit with ulimit -n"
        ));
    }
    Fits {
        width: width.min(fits),
        questions,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use nix::sys::prctl::get_thp_disable;

    #[test]
    fn a_wide_scan_has_no_huge_pages() {
        // A kernel without them, or where they are off already, tells nothing.
        let Ok(false) = get_thp_disable() else { return };
        assert!(fitting(MOSTLY_WAITING).width <= MOSTLY_WAITING);
        assert_eq!(get_thp_disable(), Ok(false));
        let fits = fitting(MOSTLY_WAITING + 1);
        assert_eq!(get_thp_disable(), Ok(fits.width > MOSTLY_WAITING));
    }
}
