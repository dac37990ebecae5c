// SPDX-License-Identifier: GPL-2.0-only
//! Who dirtied which page.

use std::collections::{BTreeMap, HashMap};

/// So many runs are kept; then the pages of all files are unknown.
const RUNS: usize = 100_000;

/// Who dirtied a page, and when (ns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Id of the task.
    pub task: u64,
    /// When its run of pages began to be dirtied.
    pub time: u64,
}

/// A run of pages with one owner.
#[derive(Debug, Clone, Copy)]
struct Run {
    pages: u64,
    owner: Owner,
}

/// Runs by disk and inode, then by first page.
#[derive(Debug, Default)]
pub struct Pages {
    files: HashMap<(u64, u64), BTreeMap<u64, Run>>,
    runs: usize,
}

impl Pages {
    /// These pages have become dirty.
    pub fn dirty(&mut self, disk: u64, inode: u64, index: u64, pages: u64, owner: Owner) {
        self.take(disk, inode, index, pages);
        if self.runs >= RUNS {
            self.files.clear();
            self.runs = 0;
        }
        let file = self.files.entry((disk, inode)).or_default();
        if let Some((begin, run)) = file.range_mut(..index).next_back() {
            if begin + run.pages == index && run.owner.task == owner.task {
                run.pages += pages;
                return;
            }
        }
        file.insert(index, Run { pages, owner });
        self.runs += 1;
    }

    /// These pages are written: runs that cover them, with an owner where there is one. They are clean then.
    pub fn take(
        &mut self,
        disk: u64,
        inode: u64,
        index: u64,
        pages: u64,
    ) -> Vec<(u64, Option<Owner>)> {
        let Some(file) = self.files.get_mut(&(disk, inode)) else {
            return vec![(pages, None)];
        };
        let end = index + pages;
        let before = file.range(..index).next_back();
        let runs: Vec<(u64, Run)> = before
            .into_iter()
            .chain(file.range(index..end))
            .map(|(begin, run)| (*begin, *run))
            .filter(|(begin, run)| begin + run.pages > index)
            .collect();
        let (mut found, mut at) = (Vec::new(), index);
        for (begin, run) in runs {
            file.remove(&begin);
            self.runs -= 1;
            let until = begin + run.pages;
            let mut keep = |from: u64, to: u64| {
                if from < to {
                    let pages = to - from;
                    file.insert(from, Run { pages, ..run });
                    self.runs += 1;
                }
            };
            keep(begin, index);
            keep(end, until);
            if begin > at {
                found.push((begin - at, None));
                at = begin;
            }
            found.push((until.min(end) - at, Some(run.owner)));
            at = until.min(end);
        }
        if at < end {
            found.push((end - at, None));
        }
        if file.is_empty() {
            self.files.remove(&(disk, inode));
        }
        found
    }

    /// Who has dirtied a page.
    pub fn owner(&self, disk: u64, inode: u64, index: u64) -> Option<Owner> {
        let file = self.files.get(&(disk, inode))?;
        let (begin, run) = file.range(..=index).next_back()?;
        (begin + run.pages > index).then_some(run.owner)
    }

    /// These pages are written over: those that are dirty are this one's from now on.
    pub fn write_over(&mut self, disk: u64, inode: u64, index: u64, pages: u64, owner: Owner) {
        let Some(file) = self.files.get(&(disk, inode)) else {
            return;
        };
        let end = index + pages;
        let others =
            |(begin, run): (&u64, &Run)| begin + run.pages > index && run.owner.task != owner.task;
        let before = file.range(..index).next_back();
        if !before.into_iter().chain(file.range(index..end)).any(others) {
            return;
        }
        let mut at = index;
        for (count, before) in self.take(disk, inode, index, pages) {
            if before.is_some() {
                self.dirty(disk, inode, at, count, owner);
            }
            at += count;
        }
    }

    /// The file is gone.
    pub fn forget(&mut self, disk: u64, inode: u64) {
        let gone = self.files.remove(&(disk, inode));
        self.runs -= gone.map_or(0, |file| file.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(task: u64) -> Owner {
        Owner { task, time: 0 }
    }

    #[test]
    fn a_shared_file_is_split_by_owner() {
        let mut pages = Pages::default();
        for index in 0..10 {
            pages.dirty(1, 5, index, 1, by(if index < 7 { 100 } else { 200 }));
        }
        let found = pages.take(1, 5, 5, 10);
        let expected = [(2, Some(by(100))), (3, Some(by(200))), (5, None)];
        assert_eq!(found, expected);
        // Written pages are clean, the others are still dirty.
        assert_eq!(pages.take(1, 5, 0, 10), [(5, Some(by(100))), (5, None)]);
        assert_eq!(pages.runs, 0);
    }

    #[test]
    fn a_folio_is_dirty_as_a_whole() {
        let mut pages = Pages::default();
        pages.dirty(1, 5, 0, 4, by(1));
        pages.dirty(1, 5, 4, 16, by(1));
        pages.dirty(1, 5, 2, 4, by(2));
        assert_eq!(pages.runs, 3);
        let expected = [(2, Some(by(1))), (4, Some(by(2))), (14, Some(by(1)))];
        assert_eq!(pages.take(1, 5, 0, 20), expected);
        assert_eq!(pages.runs, 0);
    }

    #[test]
    fn the_last_who_dirtied_it_owns_it() {
        let mut pages = Pages::default();
        pages.dirty(1, 5, 3, 1, by(1));
        pages.dirty(1, 5, 3, 1, by(2));
        assert_eq!(pages.take(1, 5, 3, 1), [(1, Some(by(2)))]);
    }

    #[test]
    fn what_is_written_over_is_the_writers_if_it_was_dirty() {
        let mut pages = Pages::default();
        pages.dirty(1, 5, 2, 6, by(1));
        pages.write_over(1, 5, 0, 4, by(2));
        pages.write_over(1, 5, 6, 1, by(1));
        assert_eq!(pages.owner(1, 5, 1), None);
        assert_eq!(pages.owner(1, 5, 3), Some(by(2)));
        let expected = [(2, None), (2, Some(by(2))), (4, Some(by(1)))];
        assert_eq!(pages.take(1, 5, 0, 8), expected);
        assert_eq!(pages.runs, 0);
    }

    #[test]
    fn a_file_that_is_gone_has_no_pages() {
        let mut pages = Pages::default();
        pages.dirty(1, 5, 3, 1, by(1));
        pages.forget(1, 5);
        assert_eq!(pages.take(1, 5, 3, 1), [(1, None)]);
        assert_eq!(pages.runs, 0);
    }
}
