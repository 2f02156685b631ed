//! What is known about every process: vector clocks, stored side by side in flat memory.
//!
//! A *moment* of a process is the number of its events so far. Knowledge is three vectors with one moment per
//! process, in this order:
//! - **happened**: the events up to this moment happen before the current event (or are it);
//! - **tso**: the stores up to this moment must have reached memory by now on a TSO machine that produces
//!   this execution;
//! - **pso**: the stores up to this moment must have reached memory on a PSO machine because of a fence.
//!   (Accesses of other processes to their addresses are noted with these addresses.)
//!
//! The vectors of one owner are adjacent, each `lanes` long. Joining the knowledge of two owners is therefore
//! one loop over one slice.
//!
//! *Source.* Vector clocks: Fidge 1988, Mattern 1989. Vector clocks for accesses to shared variables:
//! Flanagan and Freund, FastTrack, PLDI 2009, section 2.

/// A number of events of one process, below [`LATEST`].
pub type Moment = u32;

/// Moments are below this.
pub const LATEST: Moment = i32::MAX as Moment;

/// How many vectors make up the knowledge of an owner.
pub const VECTORS: usize = 3;

/// Vectors grow by this many lanes, so that loops over them have no remainder. This many moments fit into a
/// vector register on any host. Few programs under test have more processes.
pub const LANE_STEP: usize = 4;

/// Adds what `from` knows to `into`.
#[inline(always)]
pub fn join(into: &mut [Moment], from: &[Moment]) {
    // Whole blocks of lanes are compared as signed numbers, for which moments are never too large. This
    // compiles to a few vector instructions on any host.
    let blocks = into.as_chunks_mut::<LANE_STEP>().0.iter_mut().zip(from.as_chunks::<LANE_STEP>().0);
    for (into, from) in blocks {
        let (a, b) = (*into, *from);
        *into = std::array::from_fn(|lane| a[lane].cast_signed().max(b[lane].cast_signed()).cast_unsigned());
    }
}

/// Replaces what `into` knows by what `from` knows.
#[inline(always)]
pub fn copy(into: &mut [Moment], from: &[Moment]) {
    let blocks = into.as_chunks_mut::<LANE_STEP>().0.iter_mut().zip(from.as_chunks::<LANE_STEP>().0);
    for (into, from) in blocks {
        *into = *from;
    }
}

/// The knowledge of many owners, each with this many vectors.
#[derive(Clone, Debug)]
pub struct Bank<const WIDTH: usize> {
    lanes: usize,
    moments: Vec<Moment>,
}

impl<const WIDTH: usize> Bank<WIDTH> {
    /// No owners.
    pub fn new(lanes: usize) -> Bank<WIDTH> {
        Bank { lanes, moments: Vec::new() }
    }

    /// Adds an owner that knows nothing.
    pub fn push(&mut self) {
        self.moments.resize(self.moments.len() + WIDTH * self.lanes, 0);
    }

    /// Adds an owner that knows the same as another.
    pub fn push_copy(&mut self, of: usize) {
        let width = WIDTH * self.lanes;
        self.moments.extend_from_within(of * width..(of + 1) * width);
    }

    /// Everything an owner knows.
    #[inline(always)]
    pub fn of(&self, owner: usize) -> &[Moment] {
        let width = WIDTH * self.lanes;
        &self.moments[owner * width..(owner + 1) * width]
    }

    /// Everything an owner knows, mutably.
    #[inline(always)]
    pub fn of_mut(&mut self, owner: usize) -> &mut [Moment] {
        self.of_lanes(owner, self.lanes)
    }

    /// The same for a given number of lanes. If that is a constant, loops over the lanes are unrolled.
    #[inline(always)]
    pub fn of_lanes(&mut self, owner: usize, lanes: usize) -> &mut [Moment] {
        debug_assert_eq!(lanes, self.lanes, "the caller passes the number of lanes of the bank");
        &mut self.moments[owner * (WIDTH * lanes)..][..WIDTH * lanes]
    }

    /// Adds what one owner knows to another.
    pub fn join_within(&mut self, into: usize, from: usize) {
        let width = WIDTH * self.lanes;
        for lane in 0..width {
            let known = self.moments[from * width + lane];
            let moment = &mut self.moments[into * width + lane];
            *moment = (*moment).max(known);
        }
    }

    /// Makes room for more lanes.
    pub fn widen(&mut self, lanes: usize) {
        let (old, vectors) = (self.lanes, self.moments.len() / self.lanes);
        // In place, from the last vector to the first, so that memory never holds two copies.
        self.moments.resize(vectors * lanes, 0);
        for vector in (0..vectors).rev() {
            self.moments.copy_within(vector * old..(vector + 1) * old, vector * lanes);
            self.moments[vector * lanes + old..(vector + 1) * lanes].fill(0);
        }
        self.lanes = lanes;
    }

    /// Subtracts `by` from everything known about one lane. Anything that would be below 0 becomes 0.
    pub fn lower(&mut self, lane: usize, by: Moment) {
        self.moments.iter_mut().skip(lane).step_by(self.lanes).for_each(|m| *m = m.saturating_sub(by));
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.moments.len() * size_of::<Moment>()
    }
}
