//! A sweep as a pair of systemd units: a service that may do little, and a timer that starts it. Printing is `cli`'s.

use std::fmt::Write as _;
use std::path::Path;

use super::cron::{Cron, Field};
use super::plan::Sweep;
use super::schedule::{Rhythm, Schedule};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// The longest that systemd waits for a run to drain before it kills it, in seconds.
const DRAIN: u32 = 120;

/// What a service may not do: everything but reading, asking, and writing where runs are.
const HARDENING: &str = "\
NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
CapabilityBoundingSet=
AmbientCapabilities=
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
UMask=0077
";

/// Where things are, as absolute paths.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The program.
    pub program: &'a Path,
    /// `sweeps.toml`.
    pub config: &'a Path,
    /// What relative paths in it start from.
    pub working: &'a Path,
    /// Where runs are written.
    pub runs: &'a Path,
}

/// The service and the timer, each under a line with its name.
///
/// # Errors
/// When a timer cannot keep the sweep's schedule; in words that say what can.
pub fn units(sweep: &Sweep, places: &Places<'_>) -> Result<String, String> {
    let name = &sweep.name;
    let schedule = sweep.schedule.as_ref().ok_or("the sweep has no schedule")?;
    let mut calendar = String::new();
    for expression in calendars(schedule)? {
        let _ = writeln!(calendar, "OnCalendar={expression}");
    }
    let jitter = schedule.jitter.as_secs();
    Ok(format!(
        "# /etc/systemd/system/mcp-census-{name}.service\n\
         [Unit]\n\
         Description=MCP census: one run of the sweep {name}\n\
         Wants=network-online.target\n\
         After=network-online.target\n\n\
         [Service]\n\
         Type=oneshot\n\
         # A user of its own, who may write where runs are: useradd --system mcp-census\n\
         User=mcp-census\n\
         WorkingDirectory={working}\n\
         ExecStart={program} sweep --config {config} --once {name}\n\
         ReadWritePaths={runs}\n\
         # SIGTERM drains a run; the next start finishes it.\n\
         KillSignal=SIGTERM\n\
         TimeoutStopSec={DRAIN}\n\
         # 3 is a regression, which the hooks tell; the run is as it should be.\n\
         SuccessExitStatus=3\n\
         {HARDENING}\n\
         # /etc/systemd/system/mcp-census-{name}.timer\n\
         [Unit]\n\
         Description=MCP census: when the sweep {name} runs\n\n\
         [Timer]\n\
         {calendar}RandomizedDelaySec={jitter}\n\
         FixedRandomDelay=yes\n\
         AccuracySec=1s\n\
         Persistent={persistent}\n\n\
         [Install]\n\
         WantedBy=timers.target\n",
        working = escaped(places.working),
        program = escaped(places.program),
        config = escaped(places.config),
        runs = escaped(places.runs),
        persistent = if sweep.catch_up { "yes" } else { "no" },
    ))
}

/// A path as a unit file has it: `%` and `$` mean something there, and a space ends it.
fn escaped(path: &Path) -> String {
    let text = path
        .display()
        .to_string()
        .replace('\\', "\\\\")
        .replace('%', "%%")
        .replace('$', "$$")
        .replace('"', "\\\"");
    if text.contains(' ') {
        format!("\"{text}\"")
    } else {
        text
    }
}

/// A schedule as calendar events of systemd.time(7).
fn calendars(schedule: &Schedule) -> Result<Vec<String>, String> {
    let zone = schedule.zone.iana_name().unwrap_or("UTC");
    match &schedule.rhythm {
        Rhythm::Cron(cron) => Ok(of_cron(cron, zone)),
        Rhythm::Every { period, offset } if DAY % period == 0 => {
            let times: Vec<String> = (0..DAY / period)
                .map(|it| clock(it * period + offset))
                .collect();
            Ok(times.iter().map(|it| format!("*-*-* {it} UTC")).collect())
        }
        Rhythm::Every { period, offset } if *period == 7 * DAY => {
            // The epoch was a Thursday.
            let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
            let day = usize::try_from(offset / DAY).unwrap_or_default();
            Ok(vec![format!(
                "{} *-*-* {} UTC",
                days[day % 7],
                clock(offset % DAY)
            )])
        }
        Rhythm::Every { period, .. } => Err(format!(
            "a timer cannot keep every = {period}s, which neither divides a day nor is a week; use cron, or let \
             `mcp-census sweep` run as a service"
        )),
    }
}

fn clock(second: i64) -> String {
    let second = second.rem_euclid(DAY);
    format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn of_cron(cron: &Cron, zone: &str) -> Vec<String> {
    let [minutes, hours, days, months, weekdays] = cron.fields();
    let time = format!("{}:{}:00", listed(hours, 24), listed(minutes, 60));
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let on: Vec<&str> = weekdays
        .values()
        .filter_map(|it| Some(*names.get(it as usize)?))
        .collect();
    let on = if on.len() == 7 {
        String::new()
    } else {
        format!("{} ", on.join(","))
    };
    let month = listed(months, 12);
    let day = listed(days, 31);
    if days.is_starred() || weekdays.is_starred() {
        return vec![format!("{on}*-{month}-{day} {time} {zone}")];
    }
    // Either day will do, which takes two events.
    vec![
        format!("{on}*-{month}-* {time} {zone}"),
        format!("*-{month}-{day} {time} {zone}"),
    ]
}

fn listed(field: Field, all: usize) -> String {
    let values: Vec<String> = field.values().map(|it| format!("{it:02}")).collect();
    if values.len() == all {
        "*".to_owned()
    } else {
        values.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::file;

    fn calendar(said: &str) -> Result<Vec<String>, String> {
        let text = format!("[sweep.a]\nlists = [\"x\"]\n{said}\n");
        let sweeps = file::read(&text, &jiff::tz::TimeZoneDatabase::bundled()).unwrap();
        calendars(sweeps.sweeps[0].schedule.as_ref().unwrap())
    }

    #[test]
    fn a_schedule_becomes_calendar_events() {
        for (said, want) in [
            ("cron = \"0 3 * * *\"", vec!["*-*-* 03:00:00 UTC"]),
            (
                "cron = \"*/30 9-10 * * mon-fri\"\ntime_zone = \"Europe/Berlin\"",
                vec!["Mon,Tue,Wed,Thu,Fri *-*-* 09,10:00,30:00 Europe/Berlin"],
            ),
            (
                "cron = \"5 * 13 * 5\"",
                vec!["Fri *-*-* *:05:00 UTC", "*-*-13 *:05:00 UTC"],
            ),
            (
                "every = \"12h\"\noffset = \"3h\"",
                vec!["*-*-* 03:00:00 UTC", "*-*-* 15:00:00 UTC"],
            ),
            (
                "every = \"7d\"\noffset = \"27h\"",
                vec!["Fri *-*-* 03:00:00 UTC"],
            ),
        ] {
            assert_eq!(calendar(said).unwrap(), want, "{said}");
        }
        assert!(calendar("every = \"7h\"").unwrap_err().contains("use cron"));
    }

    #[test]
    fn a_path_means_itself_in_a_unit() {
        assert_eq!(escaped(Path::new("/a b/%n$x")), "\"/a b/%%n$$x\"");
    }
}
