//! The longest outage of the network between hosts that a job survives. The time-outs of the links and of the control plane derive from
//! this one number.
//!
//! TCP survives an outage by itself: the kernel retransmits what was not acknowledged. But it doubles the pause after each retransmission,
//! up to two minutes, so that a connection may stay silent as long after an outage as the outage has lasted. Linux 6.15 and later can
//! bound the pause ([`Outage::prepare`]). On older kernels the time-out ([`Outage::patience`]) includes the longer pause. The kernel gives
//! up a connection after a number of retransmissions (`net.ipv4.tcp_retries2`). With bounded pauses this number is reached sooner; if it
//! would be reached within the time-out, pauses are not bounded.

use super::socket::bound_pauses;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Silence of a rank, a host or a link after which the launcher names it in a message. The job goes on waiting.
pub const NAMED_AFTER: Duration = Duration::from_secs(3);

/// The longest outage of the network between hosts that a job survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    limit: Duration,
}

impl Default for Outage {
    /// A limit of 10 s, that of a job without `--outage-limit`.
    fn default() -> Outage {
        Outage { limit: Duration::from_secs(10) }
    }
}

impl Outage {
    /// Shortest limit, in seconds. With a shorter one, pauses of a loaded host would end jobs.
    pub const LEAST: u64 = 1;
    /// Longest limit, in seconds. The kernel would give up the connections in a longer outage; restart the job from a checkpoint then.
    pub const MOST: u64 = 300;

    /// Makes an outage of at most `limit`; `None` if that is not from [`LEAST`](Self::LEAST) to [`MOST`](Self::MOST) seconds.
    pub fn of(limit: Duration) -> Option<Outage> {
        let allowed = Duration::from_secs(Outage::LEAST)..=Duration::from_secs(Outage::MOST);
        allowed.contains(&limit).then_some(Outage { limit })
    }

    /// Returns the limit.
    pub fn limit(self) -> Duration {
        self.limit
    }

    /// Longest pause of the kernel before a retransmission, if it can be bounded. An eighth of the limit leaves time for the default
    /// of 15 retransmissions.
    fn pause(self) -> Duration {
        (self.limit / 8).max(Duration::from_secs(1))
    }

    /// The time-out with bounded pauses; `None` if the kernel would give up the connection before.
    fn bounded(self, tries: i32) -> Option<Duration> {
        let silence = self.limit + self.pause() + Duration::from_secs(1);
        // Links wait a second longer than the control plane.
        let needed = silence.as_secs_f64() + 1.0;
        (given_up(self.pause().as_secs_f64(), tries) > needed).then_some(silence)
    }

    /// Returns the silence after which a connection counts as lost: the limit, the longest pause before the kernel retransmits, and one
    /// second for the interval in which both ends check.
    pub fn patience(self) -> Duration {
        let bounded = pauses_have_bounds().and_then(|tries| self.bounded(tries));
        bounded.unwrap_or(self.limit * 2 + Duration::from_secs(2))
    }

    /// Bounds the retransmission pauses of a new connection, if the kernel supports it.
    pub fn prepare(self, stream: impl AsFd) {
        if pauses_have_bounds().and_then(|tries| self.bounded(tries)).is_some() {
            // On failure the connection is unchanged and still usable.
            let _bound = bound_pauses(stream.as_fd(), self.pause());
        }
    }
}

/// The number of retransmissions after which this kernel gives up a connection; `None` if it cannot bound the pauses between them.
fn pauses_have_bounds() -> Option<i32> {
    static KNOWN: OnceLock<Option<i32>> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).ok()?;
        let can = bound_pauses(TcpStream::from(socket).as_fd(), Duration::from_secs(1));
        let tries = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_retries2");
        can.then(|| tries.ok().and_then(|t| t.trim().parse().ok()).unwrap_or(USUAL_TRIES))
    })
}

/// Linux's default of `tcp_retries2`.
const USUAL_TRIES: i32 = 15;

/// Time in seconds after which Linux gives up a connection: the sum of `tries` pauses, which double from 0.2 s up to `pause`.
fn given_up(pause: f64, tries: i32) -> f64 {
    let doubles = ((pause / 0.2).log2().floor() as i32).min(tries);
    (2f64.powi(doubles + 1) - 1.0) * 0.2 + f64::from(tries - doubles) * pause
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_more_patient_than_a_link() {
        for seconds in Outage::LEAST..=Outage::MOST {
            let outage = Outage::of(Duration::from_secs(seconds)).unwrap();
            assert!(outage.bounded(USUAL_TRIES).is_some(), "{seconds} s");
            let allowed = outage.limit + Duration::from_secs(2)..=outage.limit * 2 + Duration::from_secs(2);
            assert!(allowed.contains(&outage.patience()), "{seconds} s");
        }
        // By Linux's own account 15 tries with its own longest pause are 924.6 s.
        assert!((given_up(120.0, USUAL_TRIES) - 924.6).abs() < 0.1);
        // With 8 tries short pauses would end connections before an outage of 10 s may.
        assert_eq!(Outage::default().bounded(8), None);
    }

    #[test]
    fn limits_are_checked() {
        let of = |seconds: f64| Outage::of(Duration::from_secs_f64(seconds)).map(|o| o.limit().as_secs_f64());
        assert_eq!([0.9, 1.0, 2.5, 300.0, 301.0].map(of), [None, Some(1.0), Some(2.5), Some(300.0), None]);
    }
}
