use alloc::collections::VecDeque;

use units::Bytes;

use super::Item;

/// First in, first out, and how much is in it.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    items: VecDeque<Item<T>>,
    bytes: Bytes,
}

impl<T> Fifo<T> {
    pub(crate) fn new() -> Self {
        Self { items: VecDeque::new(), bytes: Bytes::ZERO }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn last(&self) -> Option<&Item<T>> {
        self.items.back()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    #[inline]
    pub(crate) fn push(&mut self, item: Item<T>) {
        self.bytes += item.occupies;
        self.items.push_back(item);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Item<T>> {
        let item = self.items.pop_front()?;
        self.bytes = self.bytes - item.occupies;
        Some(item)
    }
}
