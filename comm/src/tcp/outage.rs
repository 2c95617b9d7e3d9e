//! How long an outage of the network between hosts is survived. All deadlines of silence between hosts derive from this one
//! number: those of the links and those of the control plane.
//!
//! TCP survives an outage by itself: the kernel sends again what was not acknowledged. But it doubles the pause after each try, up
//! to two minutes, so that a connection may stay silent as long after an outage as the outage has lasted. Linux 6.15 and later can
//! bound the pause ([`Outage::prepare`]). Elsewhere the silence that is waited for ([`Outage::patience`]) includes it.

use super::socket::bound_pauses;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// A rank, a host or a link of which nothing is heard for this time is named, while the job waits for it.
pub const NAMED_AFTER: Duration = Duration::from_secs(3);

/// The longest outage of the network between hosts that a job survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    limit: Duration,
}

impl Default for Outage {
    /// Ten seconds.
    fn default() -> Outage {
        Outage { limit: Duration::from_secs(10) }
    }
}

impl Outage {
    /// Shortest limit, in seconds: below it pauses of a loaded host would end jobs.
    pub const LEAST: u64 = 1;
    /// Longest limit, in seconds: for longer outages jobs restart. The kernel gives a connection up after as many tries in vain.
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

    /// Longest pause of the kernel before it sends again. By its count of tries (`tcp_retries2`, 15) it gives a connection up
    /// after 13 or more of these where they are short and 9 where they are long: an eighth of the limit leaves room.
    fn pause(self) -> Duration {
        (self.limit / 8).max(Duration::from_secs(1))
    }

    /// Returns how long nothing may be heard over a connection before it counts as lost: the limit, and the time after which the
    /// kernel has surely sent again. A second is for what both ends do between two looks.
    pub fn patience(self) -> Duration {
        let again = if pauses_have_bounds() { self.pause() } else { self.limit + Duration::from_secs(1) };
        self.limit + again + Duration::from_secs(1)
    }

    /// Bounds the pauses of a new connection, where the kernel can do so.
    pub fn prepare(self, stream: impl AsFd) {
        // Elsewhere `patience` knows.
        let _bound = bound_pauses(stream.as_fd(), self.pause());
    }
}

/// Whether this kernel can bound the pauses between its tries.
fn pauses_have_bounds() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
        socket.is_ok_and(|s| bound_pauses(TcpStream::from(s).as_fd(), Duration::from_secs(1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how long Linux gives a connection up: after 15 tries, whose pauses double from 0.2 s to the bound.
    fn given_up(pause: f64) -> f64 {
        let doubles = (pause / 0.2).log2().floor() as i32;
        (f64::from(2 << doubles) - 1.0) * 0.2 + f64::from((15 - doubles).max(0)) * pause
    }

    #[test]
    fn the_kernel_is_more_patient_than_a_link() {
        for seconds in Outage::LEAST..=Outage::MOST {
            let outage = Outage::of(Duration::from_secs(seconds)).unwrap();
            let bounded = outage.limit + outage.pause() + Duration::from_secs(2);
            assert!(given_up(outage.pause().as_secs_f64()) > bounded.as_secs_f64(), "{seconds} s");
            assert!(
                (outage.limit + Duration::from_secs(2)..=outage.limit * 2 + Duration::from_secs(2))
                    .contains(&outage.patience())
            );
        }
    }

    #[test]
    fn limits_are_checked() {
        let of = |seconds: f64| Outage::of(Duration::from_secs_f64(seconds)).map(|o| o.limit().as_secs_f64());
        assert_eq!([0.9, 1.0, 2.5, 300.0, 301.0].map(of), [None, Some(1.0), Some(2.5), Some(300.0), None]);
    }
}
