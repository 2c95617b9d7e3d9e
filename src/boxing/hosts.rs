//! Maps ranks to the hosts that they run on.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Where hosts end: the ranks of a host follow each other. Written as the number of ranks that each host has (0 if all ranks
/// are on one), or as the list of these numbers where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Hosts(Ends);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Ends {
    #[default]
    One,
    Each(usize),
    /// The rank after the last of each host.
    Uneven(&'static [usize]),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Each(usize),
    Sizes(Vec<usize>),
}

impl From<usize> for Hosts {
    /// So many ranks on each host; 0 if all are on one.
    fn from(each: usize) -> Hosts {
        Hosts(if each == 0 { Ends::One } else { Ends::Each(each) })
    }
}

impl From<Hosts> for Written {
    fn from(hosts: Hosts) -> Written {
        match hosts.0 {
            Ends::One => Written::Each(0),
            Ends::Each(n) => Written::Each(n),
            Ends::Uneven(ends) => {
                Written::Sizes((0..ends.len()).map(|i| ends[i] - if i > 0 { ends[i - 1] } else { 0 }).collect())
            }
        }
    }
}

impl TryFrom<Written> for Hosts {
    type Error = String;

    fn try_from(written: Written) -> Result<Hosts, String> {
        match written {
            Written::Each(n) => Ok(n.into()),
            Written::Sizes(sizes) if sizes.contains(&0) => Err(format!("hosts of {sizes:?} ranks: one has none")),
            Written::Sizes(sizes) => {
                Hosts::of_sizes(&sizes).ok_or_else(|| format!("hosts of {sizes:?} ranks are more than can be"))
            }
        }
    }
}

impl Hosts {
    /// From the host of each rank. Where the ranks of a host do not follow each other, every rank is taken for a host of its
    /// own.
    pub fn of(table: &[usize]) -> Hosts {
        let sizes: Vec<usize> = table.chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
        let known = if table.is_sorted() { Hosts::of_sizes(&sizes) } else { None };
        known.unwrap_or(1.into())
    }

    /// None if these are more ranks than there can be.
    fn of_sizes(sizes: &[usize]) -> Option<Hosts> {
        let mut ends: Vec<usize> = Vec::with_capacity(sizes.len());
        for n in sizes {
            ends.push(ends.last().copied().unwrap_or(0).checked_add(*n)?);
        }
        Some(match sizes {
            [] | [_] => Hosts::default(),
            // The last may have fewer.
            [first, middle @ .., last] if middle.iter().all(|n| n == first) && last <= first => (*first).into(),
            _ => Hosts(Ends::Uneven(kept(ends))),
        })
    }

    /// The host of a rank.
    pub fn host(self, rank: usize) -> usize {
        match self.0 {
            Ends::One => 0,
            Ends::Each(n) => rank / n,
            Ends::Uneven(ends) => ends.partition_point(|end| *end <= rank),
        }
    }

    /// Whether there may be several.
    pub fn several(self) -> bool {
        self.0 != Ends::One
    }
}

/// One copy of each list for as long as the process lives, so that a [`Hosts`] can be copied. A job has one list.
fn kept(ends: Vec<usize>) -> &'static [usize] {
    static LISTS: Mutex<Vec<&[usize]>> = Mutex::new(Vec::new());
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lists.iter().find(|l| ***l == *ends) {
        return found;
    }
    let list: &'static [usize] = Vec::leak(ends);
    lists.push(list);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_its_host() {
        for sizes in [&[2, 2][..], &[2, 1, 1], &[2, 2, 1], &[1, 3], &[1, 1, 1], &[4], &[3, 1, 3]] {
            let table: Vec<usize> = sizes.iter().enumerate().flat_map(|(h, n)| vec![h; *n]).collect();
            let hosts = Hosts::of(&table);
            assert_eq!((0..table.len()).map(|r| hosts.host(r)).collect::<Vec<_>>(), table);
            assert_eq!(hosts.several(), sizes.len() > 1);
            assert_eq!(hosts, Hosts::of(&table), "equal lists are equal hosts");
        }
        assert_eq!(Hosts::of(&[0, 0, 1, 1]), 2.into());
        // Ranks in turn over the hosts.
        assert_eq!(Hosts::of(&[0, 1, 0, 1]), 1.into());
        assert_eq!(Hosts::default(), 0.into());
    }

    #[test]
    fn hosts_are_written_and_read() {
        for (table, text) in [(&[0, 0][..], "0"), (&[0, 0, 1, 1], "2"), (&[0, 0, 0, 1, 2], "[3,1,1]")] {
            let hosts = Hosts::of(table);
            assert_eq!(serde_json::to_string(&hosts).unwrap(), text);
            assert_eq!(serde_json::from_str::<Hosts>(text).unwrap(), hosts);
        }
        for (text, told) in [
            ("[2,0]", "hosts of [2, 0] ranks: one has none".to_string()),
            ("[1,18446744073709551615]", format!("hosts of [1, {}] ranks are more than can be", u64::MAX)),
        ] {
            let error = serde_json::from_str::<Hosts>(text).unwrap_err().to_string();
            assert!(error.contains(&told), "{error}");
        }
    }
}
