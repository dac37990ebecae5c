// SPDX-License-Identifier: GPL-2.0-only
//! Which file's blocks are where on a disk, as the file system has said.

use fasttrack_trace_log::BlockType;
use std::collections::BTreeMap;

/// So many runs are kept; then all is forgotten and known again as it is used.
const RUNS: usize = 100_000;

/// What a run of sectors holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// Device of the file system.
    pub dev: u64,
    /// Inode; 0 if the blocks are no file's.
    pub inode: u64,
    /// Page of the file at the run's first sector.
    pub index: u64,
    /// What the blocks hold.
    pub block_type: BlockType,
}

/// Runs of sectors by disk and first sector.
#[derive(Debug, Default)]
pub struct Blocks {
    runs: BTreeMap<(u64, u64), (u64, Mapped)>,
}

impl Mapped {
    /// The run's rest after so many sectors.
    fn after(self, sectors: u64) -> Mapped {
        Mapped {
            index: self.index + sectors / 8,
            ..self
        }
    }
}

impl Blocks {
    /// These sectors hold what `mapped` says, whatever they held before.
    pub fn map(&mut self, disk: u64, sector: u64, sectors: u64, mapped: Mapped) {
        if sectors == 0 {
            return;
        }
        if self.runs.len() >= RUNS {
            self.runs.clear();
        }
        self.free(disk, sector, sectors);
        self.runs.insert((disk, sector), (sectors, mapped));
    }

    /// These sectors hold nothing that is known.
    pub fn free(&mut self, disk: u64, sector: u64, sectors: u64) {
        let end = sector.saturating_add(sectors);
        let overlapping: Vec<_> = self.over(disk, sector, end);
        for (begin, length, mapped) in overlapping {
            self.runs.remove(&(disk, begin));
            if begin < sector {
                self.runs.insert((disk, begin), (sector - begin, mapped));
            }
            if begin + length > end {
                let rest = begin + length - end;
                self.runs
                    .insert((disk, end), (rest, mapped.after(end - begin)));
            }
        }
    }

    /// The runs that overlap `begin..end`.
    fn over(&self, disk: u64, begin: u64, end: u64) -> Vec<(u64, u64, Mapped)> {
        let before = self.runs.range((disk, 0)..(disk, begin)).next_back();
        let inside = self.runs.range((disk, begin)..(disk, end.max(begin)));
        before
            .into_iter()
            .chain(inside)
            .map(|((_, at), (length, mapped))| (*at, *length, *mapped))
            .filter(|(at, length, _)| at + length > begin)
            .collect()
    }

    /// What these sectors hold: runs that cover them, known or not, in sectors.
    pub fn look_up(&self, disk: u64, sector: u64, sectors: u64) -> Vec<(u64, Option<Mapped>)> {
        let end = sector + sectors;
        let mut found = Vec::new();
        let mut at = sector;
        for (begin, length, mapped) in self.over(disk, sector, end) {
            if begin > at {
                found.push((begin - at, None));
                at = begin;
            }
            let until = end.min(begin + length);
            found.push((until - at, Some(mapped.after(at - begin))));
            at = until;
        }
        if at < end {
            found.push((end - at, None));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, index: u64) -> Mapped {
        let (dev, block_type) = (1, BlockType::DATA);
        Mapped {
            dev,
            inode,
            index,
            block_type,
        }
    }

    #[test]
    fn what_is_mapped_is_found_with_its_pages() {
        let mut blocks = Blocks::default();
        blocks.map(1, 80, 80, file(5, 100));
        let found = blocks.look_up(1, 72, 32);
        assert_eq!(found, [(8, None), (24, Some(file(5, 100)))]);
        assert_eq!(blocks.look_up(1, 96, 8), [(8, Some(file(5, 102)))]);
        assert_eq!(blocks.look_up(2, 96, 8), [(8, None)]);
        let across = blocks.look_up(1, 152, 16);
        assert_eq!(across, [(8, Some(file(5, 109))), (8, None)]);
    }

    #[test]
    fn the_last_map_is_true() {
        let mut blocks = Blocks::default();
        blocks.map(1, 80, 80, file(5, 0));
        blocks.map(1, 96, 16, file(6, 7));
        let found = blocks.look_up(1, 80, 80);
        let expected = [
            (16, Some(file(5, 0))),
            (16, Some(file(6, 7))),
            (48, Some(file(5, 4))),
        ];
        assert_eq!(found, expected);
        blocks.free(1, 0, 1000);
        assert_eq!(blocks.look_up(1, 80, 80), [(80, None)]);
    }
}
