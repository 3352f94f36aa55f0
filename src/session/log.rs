//! An append-only list that is snapshotted in O(1).

use std::sync::{Arc, OnceLock};

/// A list in buckets that double in size. A clone shares the buckets, so a
/// snapshot costs a few pointers however long the list is, and the list is
/// appended to while snapshots live: what a snapshot sees ends at its length.
#[derive(Clone, Debug)]
pub(crate) struct Log<T> {
    buckets: Vec<Arc<[OnceLock<T>]>>,
    len: usize,
}

/// The first bucket holds this many; a power of two.
const FIRST: usize = 8;

impl<T: Clone> Log<T> {
    pub(crate) const fn new() -> Self {
        Self { buckets: Vec::new(), len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        let (bucket, offset) = locate(index);
        self.buckets.get(bucket)?.get(offset)?.get()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    pub(crate) fn push(&mut self, value: T) {
        let (bucket, offset) = locate(self.len);
        if bucket >= self.buckets.len() {
            self.buckets.push((0..FIRST << bucket).map(|_| OnceLock::new()).collect());
        }
        let Some(slots) = self.buckets.get_mut(bucket) else { return };
        if let Some(slot) = slots.get(offset)
            && let Err(value) = slot.set(value)
        {
            // Another clone appended here first. Only one ever does in this
            // crate; were there two, each gets its own bucket.
            let own: Arc<[OnceLock<T>]> = (0..FIRST << bucket).map(|_| OnceLock::new()).collect();
            for (from, to) in slots.iter().take(offset).zip(own.iter()) {
                if let Some(kept) = from.get() {
                    let _ = to.set(kept.clone());
                }
            }
            if let Some(slot) = own.get(offset) {
                let _ = slot.set(value);
            }
            *slots = own;
        }
        self.len += 1;
    }
}

impl<T: Clone> FromIterator<T> for Log<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut log = Self::new();
        for value in values {
            log.push(value);
        }
        log
    }
}

/// Bucket k holds the indexes `FIRST * (2^k - 1) ..`, `FIRST * 2^k` of them.
const fn locate(index: usize) -> (usize, usize) {
    let shifted = index.saturating_add(FIRST);
    let top = shifted.ilog2();
    ((top - FIRST.ilog2()) as usize, shifted - (1 << top))
}

#[cfg(test)]
mod tests {
    use super::Log;

    #[test]
    fn snapshot_ends_at_its_length_while_the_list_grows() {
        let mut log: Log<usize> = (0..100).collect();
        let snapshot = log.clone();
        for n in 100..10_000 {
            log.push(n);
        }
        assert_eq!(snapshot.iter().copied().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        assert_eq!(log.iter().copied().collect::<Vec<_>>(), (0..10_000).collect::<Vec<_>>());
        assert_eq!((snapshot.get(100), log.get(9_999)), (None, Some(&9_999)));
    }

    #[test]
    fn two_clones_that_both_grow_do_not_see_each_other() {
        let mut left: Log<u8> = [1, 2, 3].into_iter().collect();
        let mut right = left.clone();
        left.push(4);
        right.push(5);
        left.push(6);
        assert_eq!(left.iter().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 6]);
        assert_eq!(right.iter().copied().collect::<Vec<_>>(), [1, 2, 3, 5]);
    }
}
