//! Storage for packets in flight: large chunks filled from the front, given back whole.
//!
//! A 10 Gbit/s x 100 ms path holds 250 MB in frames of 40 bytes to 64 KiB. Frames leave in nearly the order they came, so each
//! is written behind the one before it, and a chunk is reused once the last frame in it is gone. That wastes
//! no space on small frames and copies nothing.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Bytes of one chunk, and its alignment: a huge page of x86-64 and of arm64 with 4 KiB pages.
const CHUNK: usize = 2 << 20;

/// The memory of a chunk, on a huge page where the kernel gives one: at 10 Gbit/s the copies in and out otherwise spend a good part of their
/// time looking up pages.
#[derive(Debug)]
struct Memory(NonNull<u8>);

// SAFETY: the allocation belongs to this value alone, as a `Box<[u8]>`'s does.
unsafe impl Send for Memory {}

impl Memory {
    const LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
        Ok(layout) => layout,
        Err(_) => panic!("the size is a power of two"),
    };

    fn new() -> Self {
        // SAFETY: the layout's size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(Self::LAYOUT) }) else { handle_alloc_error(Self::LAYOUT) };
        // A refusal costs speed only.
        // SAFETY: the range is one allocation of whole pages, and the advice does not change its contents.
        let _ = unsafe { libc::madvise(start.as_ptr().cast(), CHUNK, libc::MADV_HUGEPAGE) };
        Self(start)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is `CHUNK` initialised bytes, and lives and is not written while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), CHUNK) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), CHUNK) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.0.as_ptr(), Self::LAYOUT) }
    }
}

/// Where a frame lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    chunk: u32,
    offset: u32,
    len: u32,
}

#[derive(Debug)]
struct Chunk {
    memory: Memory,
    used: usize,
    live: u32,
}

/// The chunks, and which of them are free.
#[derive(Debug, Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    current: Option<u32>,
}

impl Arena {
    /// An empty arena; chunks are allocated as they are needed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for a frame of at most `size` bytes. Nothing is taken until [`Arena::commit`]; asking again gives the same room.
    ///
    /// # Panics
    /// Where `size` is larger than a chunk.
    pub fn reserve(&mut self, size: usize) -> &mut [u8] {
        assert!(size <= CHUNK, "a frame of {size} bytes does not fit a chunk");
        let fits = self.current.is_some_and(|c| CHUNK - self.chunks[c as usize].used >= size);
        if !fits {
            self.retire_current();
            let index = self.free.pop().unwrap_or_else(|| {
                self.chunks.push(Chunk { memory: Memory::new(), used: 0, live: 0 });
                (self.chunks.len() - 1) as u32
            });
            self.current = Some(index);
        }
        let chunk = &mut self.chunks[self.current.expect("a chunk was just chosen") as usize];
        &mut chunk.memory.bytes_mut()[chunk.used..chunk.used + size]
    }

    /// Keeps the first `len` bytes of the room reserved last.
    ///
    /// # Panics
    /// Where nothing was reserved.
    pub fn commit(&mut self, len: usize) -> Place {
        let index = self.current.expect("reserve comes before commit");
        let chunk = &mut self.chunks[index as usize];
        let place = Place { chunk: index, offset: chunk.used as u32, len: len as u32 };
        // Frames start on cache lines: the next header is read soon.
        chunk.used = (chunk.used + len).next_multiple_of(64).min(CHUNK);
        chunk.live += 1;
        place
    }

    /// The bytes of a frame.
    pub fn get(&self, place: Place) -> &[u8] {
        &self.chunks[place.chunk as usize].memory.bytes()[place.offset as usize..(place.offset + place.len) as usize]
    }

    /// Gives a frame's room back. Once per frame.
    pub fn release(&mut self, place: Place) {
        let chunk = &mut self.chunks[place.chunk as usize];
        debug_assert!(chunk.live > 0, "a frame is released once");
        chunk.live -= 1;
        if chunk.live == 0 {
            chunk.used = 0;
            if self.current != Some(place.chunk) {
                self.free.push(place.chunk);
            }
        }
    }

    /// Bytes allocated from the system.
    pub fn allocated(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    fn retire_current(&mut self) {
        if let Some(index) = self.current.take() {
            let chunk = &mut self.chunks[index as usize];
            if chunk.live == 0 {
                chunk.used = 0;
                self.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(arena: &mut Arena, byte: u8, len: usize) -> Place {
        arena.reserve(70_000)[..len].fill(byte);
        arena.commit(len)
    }

    #[test]
    fn frames_keep_their_bytes_while_others_come_and_go() {
        let mut arena = Arena::new();
        let mut held = Vec::new();
        for round in 0..2_000usize {
            held.push((put(&mut arena, round as u8, 40 + round * 7 % 60_000), round as u8));
            if round % 3 == 0 {
                let (place, byte) = held.remove(0);
                assert!(arena.get(place).iter().all(|b| *b == byte));
                arena.release(place);
            }
        }
        for (place, byte) in held {
            assert!(arena.get(place).iter().all(|b| *b == byte));
            arena.release(place);
        }
    }

    #[test]
    fn chunks_are_reused_when_their_frames_are_gone() {
        let mut arena = Arena::new();
        for _ in 0..10_000 {
            let place = put(&mut arena, 1, 60_000);
            arena.release(place);
        }
        assert_eq!(arena.allocated(), CHUNK);
        let kept: Vec<_> = (0..100).map(|_| put(&mut arena, 2, 60_000)).collect();
        assert!(arena.allocated() > CHUNK, "held frames are not overwritten");
        kept.into_iter().for_each(|p| arena.release(p));
    }

    #[test]
    #[should_panic(expected = "does not fit a chunk")]
    fn a_frame_larger_than_a_chunk_is_refused() {
        Arena::new().reserve(CHUNK + 1);
    }
}
