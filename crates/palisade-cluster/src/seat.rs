//! A process's place in the group: the dataflows through which the processes talk.
//!
//! There are three, and they stay for all searches and questions:
//!
//! ```text
//! states:    input ──by owner──▶ insert into the share ──by asker──▶ "was known before" ──▶ probe
//! summaries: input ──to everyone──▶ inbox ──▶ probe
//! talk:      input ──to one process──▶ inbox
//! ```
//!
//! The first two work in steps: everything sent in a step has been received when timely says that the step is over. In
//! the first, that includes the replies to what was received. So there is no counting of messages here, and no message
//! that means "I am done".
//!
//! Another process may learn earlier than this one that a step is over, and begin the next. Its states are put aside until
//! this process begins that step, too ([`Early`]), because what they are compared with depends on it.
//!
//! *The thread.* timely's workers stay on one thread, and so do seats. A search finds the seat of its thread
//! ([`with_seat`]). Without one, it runs in this process alone.

use crate::agree::{Asked, Leaving};
use crate::link::{Link, Wire};
use crate::share::{Share, owner};
use palisade_engine::Limits;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use timely::communication::Hooks;
use timely::communication::Push;
use timely::communication::allocator::thread::Thread;
use timely::communication::allocator::zero_copy::allocator::TcpBuilder;
use timely::communication::allocator::zero_copy::initialize::{
    CommsGuard, initialize_networking_from_sockets,
};
use timely::communication::allocator::{Allocator, ProcessBuilder};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, Input, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::scheduling::Activator;
use timely::worker::Worker;

/// How long to wait for others before looking whether they are still there.
const LOOK: Duration = Duration::from_millis(20);
/// How long to wait without going to sleep. Within a round, the others are rarely later than this, and waking up takes
/// longer than a round of a small level.
const AWAKE: Duration = Duration::from_micros(500);
/// How long the others have to answer after this process was asked to stop.
const PATIENCE: Duration = Duration::from_secs(3);

/// A process was lost, or does something else. There is no answer without it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Which one, counting from 0.
    pub process: usize,
    /// What happened.
    pub how: Loss,
}

/// How a process was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Its user asked it to stop, and it has said so.
    Stopped,
    /// For another reason: the second half of a sentence about it.
    Because(String),
}

impl Lost {
    pub(crate) fn because(process: usize, why: impl Into<String>) -> Lost {
        Lost { process, how: Loss::Because(why.into()) }
    }
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.how {
            Loss::Stopped => write!(f, "process {} was stopped by its user", self.process),
            Loss::Because(why) => write!(f, "process {} was lost: {why}", self.process),
        }
    }
}

/// What one process sends to another at once.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub target: u32,
    pub source: u32,
    pub words: Vec<u64>,
}

/// As bytes: the words go onto the wire as they are in memory, after target and source in one word.
impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ends = u64::from(self.target) << 32 | u64::from(self.source);
        (ends, Bytes(bytemuck::cast_slice(&self.words))).serialize(serializer)
    }
}

struct Bytes<'b>(&'b [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Block, D::Error> {
        let (ends, bytes): (u64, &'de [u8]) = Deserialize::deserialize(deserializer)?;
        let words = bytes.chunks_exact(8);
        let words = words.map(|word| u64::from_ne_bytes(word.try_into().expect("a word has eight bytes")));
        Ok(Block { target: (ends >> 32) as u32, source: ends as u32, words: words.collect() })
    }
}

/// Sends each block to its target at once. timely's own distribution by a function waits for more.
struct ByTarget;

impl Distributor<Vec<Block>> for ByTarget {
    fn partition<T: Clone, P: Push<Message<T, Vec<Block>>>>(
        &mut self,
        blocks: &mut Vec<Block>,
        time: &T,
        pushers: &mut [P],
    ) {
        for block in blocks.drain(..) {
            let target = block.target as usize;
            Message::push_at(&mut vec![block], time.clone(), &mut pushers[target]);
        }
    }

    fn flush<T: Clone, P: Push<Message<T, Vec<Block>>>>(&mut self, _: &T, _: &mut [P]) {}
}

fn by_target() -> DistributorPact<impl FnOnce(usize) -> ByTarget + 'static> {
    DistributorPact(|_: usize| ByTarget)
}

type Builder = CapacityContainerBuilder<Vec<Block>>;
type Port = InputHandle<u64, Builder>;
/// What has arrived, and in which step.
type Inbox = Rc<RefCell<VecDeque<(u64, Block)>>>;

/// The step that this process is in, and how to wake the operator that has put states of later steps aside.
#[derive(Default)]
struct Early {
    /// Its number plus one, or 0 before the first.
    begun: Cell<u64>,
    wake: RefCell<Option<Activator>>,
}

/// A place that is not taken yet. Unlike a [`Seat`], it can be sent to another thread.
pub struct Place {
    network: Option<(TcpBuilder, CommsGuard)>,
    streams: Vec<TcpStream>,
    index: usize,
    processes: usize,
    wire: Arc<Wire>,
}

impl Place {
    /// The only place of a group of one.
    pub fn alone() -> Place {
        Place { network: None, streams: Vec::new(), index: 0, processes: 1, wire: Arc::default() }
    }

    /// The place with this index, with a connection to every other process, in order, and `None` for itself.
    pub fn connected(streams: Vec<Option<TcpStream>>, index: usize) -> io::Result<Place> {
        let wire = Arc::<Wire>::default();
        let processes = streams.len();
        if processes == 1 {
            return Ok(Place::alone());
        }
        let clones = streams.iter().flatten().map(TcpStream::try_clone);
        let clones = clones.collect::<io::Result<Vec<TcpStream>>>()?;
        let link = |(process, stream): (usize, Option<TcpStream>)| {
            stream.map(|stream| Link::new(stream, process, wire.clone()))
        };
        let links: Vec<Option<Link>> = streams.into_iter().enumerate().map(link).collect();
        let hooks = Hooks::default();
        let inner = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), None);
        let (mut builders, guard) = initialize_networking_from_sockets(inner, links, index, 1, hooks)?;
        let builder = builders.pop().expect("there is one worker");
        Ok(Place { network: Some((builder, guard)), streams: clones, index, processes, wire })
    }

    /// The places of a group inside one process, connected over the loopback interface. For tests.
    pub fn group(processes: usize) -> io::Result<Vec<Place>> {
        let mut streams: Vec<Vec<Option<TcpStream>>> =
            (0..processes).map(|_| (0..processes).map(|_| None).collect()).collect();
        let pairs = (0..processes).flat_map(|second| (0..second).map(move |first| (first, second)));
        for (first, second) in pairs {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let there = TcpStream::connect(listener.local_addr()?)?;
            let here = listener.accept()?.0;
            there.set_nodelay(true)?;
            here.set_nodelay(true)?;
            streams[first][second] = Some(here);
            streams[second][first] = Some(there);
        }
        streams.into_iter().enumerate().map(|(index, streams)| Place::connected(streams, index)).collect()
    }

    /// Notices whether processes were lost, for threads other than the seat's.
    pub fn watch(&self) -> Watch {
        Watch(self.wire.clone())
    }

    /// Takes the place, for this thread.
    pub fn sit_down(self) -> Seat {
        let (allocator, guard) = match self.network {
            Some((builder, guard)) => (Allocator::Tcp(builder.build()), Some(guard)),
            None => (Allocator::Thread(Thread::default()), None),
        };
        debug_assert_eq!((allocator.index(), allocator.peers()), (self.index, self.processes));
        // Without a clock, it would never wait.
        let clock = Some(Instant::now());
        let mut worker = Worker::new(timely::WorkerConfig::default(), allocator, clock);
        let share = Rc::new(RefCell::new(Share::new(1)));
        let closed = Rc::new(RefCell::new(Vec::new()));
        let (summaries, talk) = (Inbox::default(), Inbox::default());
        let probes = [ProbeHandle::new(), ProbeHandle::new()];
        let early = Rc::<Early>::default();
        let states_port = states(&mut worker, &share, &closed, &early, &probes[0]);
        let summaries_port = inbox(&mut worker, "summaries", &summaries, &probes[1]);
        let talk_port = inbox(&mut worker, "talk", &talk, &ProbeHandle::new());
        Seat {
            states: Channel { port: states_port, probe: probes[0].clone() },
            summaries: Channel { port: summaries_port, probe: probes[1].clone() },
            talk: talk_port,
            heard: talk,
            inbox: summaries,
            share,
            closed,
            early,
            worker,
            guard,
            streams: self.streams,
            index: self.index,
            processes: self.processes,
            wire: self.wire,
            waited: Duration::ZERO,
            over: None,
            asked: Asked::default(),
            left: Leaving::default(),
        }
    }
}

/// Notices whether processes were lost, while the thread of the seat does something else.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Wire>);

impl Watch {
    /// The process that was lost first, if any was.
    pub fn lost(&self) -> Option<Lost> {
        self.0.lost().map(|(process, why)| Lost::because(process, why))
    }
}

/// The dataflow of states.
fn states(
    worker: &mut Worker,
    share: &Rc<RefCell<Share>>,
    closed: &Rc<RefCell<Vec<u64>>>,
    early: &Rc<Early>,
    probe: &ProbeHandle<u64>,
) -> Port {
    let mut port = Port::new_with_builder();
    let processes = worker.peers();
    let source = worker.index() as u32;
    let (share, closed, early) = (share.clone(), closed.clone(), early.clone());
    worker.dataflow_named("states", |scope| {
        let arrived = scope.input_from(&mut port);
        let replies = arrived.unary::<Builder, _, _, _>(by_target(), "insert", move |_, info| {
            *early.wake.borrow_mut() = Some(scope.activator_for(info.address));
            let mut replies: Vec<Vec<u64>> = vec![Vec::new(); processes];
            let mut aside: Vec<(Capability<u64>, Vec<Block>)> = Vec::new();
            move |input, output| {
                input.for_each_time(|time, blocks| {
                    let blocks = blocks.flat_map(|blocks| blocks.drain(..)).collect();
                    aside.push((time.retain(output.output_index()), blocks));
                });
                for (time, blocks) in aside.extract_if(.., |(time, _)| *time.time() < early.begun.get()) {
                    let mut share = share.borrow_mut();
                    for block in blocks {
                        share.insert_all(&block.words, |parent| {
                            replies[owner(parent, processes)].push(parent);
                        });
                    }
                    let mut session = output.session(&time);
                    for (target, words) in (0..).zip(&mut replies) {
                        if !words.is_empty() {
                            session.give(Block { target, source, words: std::mem::take(words) });
                        }
                    }
                }
            }
        });
        let ended = replies.unary::<Builder, _, _, _>(by_target(), "known before", move |_, _| {
            move |input, _| {
                input.for_each_time(|_, blocks| {
                    let mut closed = closed.borrow_mut();
                    blocks.flatten().for_each(|block| closed.append(&mut block.words));
                });
            }
        });
        ended.probe_with(probe);
    });
    port
}

/// A dataflow that only delivers.
fn inbox(worker: &mut Worker, name: &str, inbox: &Inbox, probe: &ProbeHandle<u64>) -> Port {
    let mut port = Port::new_with_builder();
    let inbox = inbox.clone();
    worker.dataflow_named(name, |scope| {
        let delivered =
            scope.input_from(&mut port).unary::<Builder, _, _, _>(by_target(), "deliver", move |_, _| {
                move |input, _| {
                    input.for_each_time(|time, blocks| {
                        let mut inbox = inbox.borrow_mut();
                        let blocks = blocks.flat_map(|blocks| blocks.drain(..));
                        inbox.extend(blocks.map(|block| (*time.time(), block)));
                    });
                }
            });
        delivered.probe_with(probe);
    });
    port
}

/// A dataflow that works in steps.
struct Channel {
    port: Port,
    probe: ProbeHandle<u64>,
}

/// Why the processes do nothing together any more. All of them know it.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// One was asked to stop.
    Stopped,
    /// One left, or does something else.
    Lost(Lost),
}

/// A process's place in the group. It belongs to one thread.
pub struct Seat {
    states: Channel,
    summaries: Channel,
    talk: Port,
    heard: Inbox,
    inbox: Inbox,
    pub(crate) share: Rc<RefCell<Share>>,
    /// The parents whose successors were known before.
    pub(crate) closed: Rc<RefCell<Vec<u64>>>,
    early: Rc<Early>,
    worker: Worker,
    guard: Option<CommsGuard>,
    /// The connections to the other processes.
    streams: Vec<TcpStream>,
    index: usize,
    processes: usize,
    wire: Arc<Wire>,
    /// How long this process has waited for others.
    waited: Duration,
    /// How the group has come to an end, if it has. Nothing is sent any more.
    pub(crate) over: Option<Over>,
    /// What this process was asked.
    pub(crate) asked: Asked,
    /// How the others have left.
    pub(crate) left: Leaving,
}

impl Seat {
    /// The index of this process. Process 0 gives the answer.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Sets what this process was asked. Nothing is shared with processes that were asked something else.
    pub fn set_asked(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// How many bytes this process has sent to others, and received from them.
    pub fn bytes_on_the_wire(&self) -> (u64, u64) {
        (self.wire.sent.load(Ordering::Relaxed), self.wire.received.load(Ordering::Relaxed))
    }

    /// How long this process has waited for others in its searches.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Fails if a process was lost.
    pub fn check(&self) -> Result<(), Lost> {
        match self.wire.lost() {
            Some((process, why)) => Err(Lost::because(process, why)),
            None => Ok(()),
        }
    }

    /// Begins the next step of sending states. From now on, what others send in this step is inserted.
    pub(crate) fn begin_step(&mut self) {
        self.early.begun.set(self.states.port.time() + 1);
        self.early.wake.borrow().iter().for_each(Activator::activate);
    }

    /// Sends states to the process that keeps them.
    pub(crate) fn send_states(&mut self, target: usize, words: Vec<u64>) {
        self.states.port.send(self.block(target, words));
        self.states.port.flush();
    }

    /// Handles what has arrived, without waiting.
    pub(crate) fn step(&mut self) {
        self.worker.step();
    }

    /// Waits until everything has arrived that was sent to the shares in this step, and all replies to it.
    pub(crate) fn settle(&mut self, limits: &Limits) -> Result<(), Lost> {
        let next = self.states.port.time() + 1;
        self.states.port.advance_to(next);
        let probe = self.states.probe.clone();
        self.wait(limits, move || probe.less_than(&next))
    }

    /// Sends a message to all processes, and waits for the messages of all. They are in the order of the processes.
    pub(crate) fn exchange(&mut self, words: Vec<u64>, limits: &Limits) -> Result<Vec<Vec<u64>>, Lost> {
        for target in 0..self.processes {
            self.summaries.port.send(self.block(target, words.clone()));
        }
        let next = self.summaries.port.time() + 1;
        self.summaries.port.advance_to(next);
        let probe = self.summaries.probe.clone();
        self.wait(limits, move || probe.less_than(&next))?;
        let mut inbox = self.inbox.borrow_mut();
        let (now, later): (Vec<_>, Vec<_>) = inbox.drain(..).partition(|(step, _)| *step < next);
        inbox.extend(later);
        let mut blocks: Vec<Block> = now.into_iter().map(|(_, block)| block).collect();
        blocks.sort_by_key(|block| block.source);
        assert_eq!(blocks.len(), self.processes, "there is one message from each process");
        Ok(blocks.into_iter().map(|block| block.words).collect())
    }

    /// Sends a message to one process.
    pub(crate) fn tell(&mut self, target: usize, words: Vec<u64>) {
        self.talk.send(self.block(target, words));
        self.talk.flush();
    }

    /// Waits a little for messages to this process, unless there are some. Returns them with their senders.
    pub(crate) fn listen(&mut self) -> Result<Vec<(usize, Vec<u64>)>, Lost> {
        self.check()?;
        self.worker.step();
        if self.heard.borrow().is_empty() {
            self.worker.step_or_park(Some(LOOK));
        }
        Ok(self.heard.borrow_mut().drain(..).map(|(_, block)| (block.source as usize, block.words)).collect())
    }

    fn block(&self, target: usize, words: Vec<u64>) -> Block {
        Block { target: target as u32, source: self.index as u32, words }
    }

    fn wait(&mut self, limits: &Limits, is_open: impl Fn() -> bool) -> Result<(), Lost> {
        let mut asked_to_stop = None;
        let began = Instant::now();
        let mut looked = began;
        while is_open() {
            if began.elapsed() < AWAKE {
                self.worker.step();
                // The threads that send and receive may need this core.
                std::thread::yield_now();
                continue;
            }
            self.worker.step_or_park(Some(LOOK));
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            self.check()?;
            // Processes that were asked to stop say so when their round is over. One that does not answer even then is
            // not waited for.
            if limits.check(0).is_err() {
                let since: &mut Instant = asked_to_stop.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    return Err(self.silent());
                }
            }
        }
        if self.processes > 1 {
            self.waited += began.elapsed();
        }
        Ok(())
    }

    /// The first process that has not sent its message.
    fn silent(&self) -> Lost {
        let inbox = self.inbox.borrow();
        let heard = |process: usize| inbox.iter().any(|(_, block)| block.source as usize == process);
        let process = (0..self.processes).find(|&process| process != self.index && !heard(process));
        Lost::because(process.unwrap_or(0), "it does not answer")
    }

    /// Why the group has come to an end early, if it has. A process that was stopped while the others worked on something
    /// alone has said so before it ended, and nobody has listened yet.
    pub fn lost(&mut self) -> Option<Lost> {
        if let Some(Over::Lost(lost)) = &self.over {
            return Some(lost.clone());
        }
        let lost = self.check().err()?;
        self.worker.step();
        let says_stopped = self.said_leaving(lost.process).is_some_and(|leaving| leaving.is_stopped);
        Some(if says_stopped { Lost { how: Loss::Stopped, ..lost } } else { lost })
    }

    /// How a process has left, if it has said so where nobody expected it yet.
    fn said_leaving(&self, process: usize) -> Option<Leaving> {
        let inbox = self.inbox.borrow();
        let said = inbox.iter().filter(|(_, block)| block.source as usize == process);
        said.filter_map(|(_, block)| Leaving::decode(&block.words)).next()
    }

    /// Leaves the group, once all others leave it too. They end what they do if this process was asked to stop.
    ///
    /// Process 0 does not wait for the others longer than `patience`. The others wait until it has its answer, unless `stop`
    /// is set: what they have done is part of it. Returns whether one of them was asked to stop, and whether process 0 has a
    /// complete answer.
    pub fn leave(mut self, how: Leaving, stop: &Arc<AtomicBool>, patience: Duration) -> Leaving {
        let limits = match self.index {
            0 => Limits::unlimited(1).with_timeout(patience.saturating_sub(PATIENCE)),
            _ => Limits::unlimited(1).with_stop(stop.clone()),
        };
        let all_left = self.over.is_some()
            || match self.exchange(how.encode(), &limits) {
                Ok(messages) => {
                    self.left = Leaving::of_group(&messages);
                    true
                }
                Err(_) => {
                    self.hear_first();
                    false
                }
            };
        let left = self.left;
        let Some(guard) = self.guard.take_if(|_| all_left) else { return left };
        self.streams.clear();
        drop(self);
        // It waits for the last bytes, and for those of the others.
        let (done, waiting) = std::sync::mpsc::channel::<()>();
        let wait = move || {
            drop(guard);
            drop(done);
        };
        if std::thread::Builder::new().spawn(wait).is_ok() {
            let _ = waiting.recv_timeout(patience);
        }
        left
    }

    /// Process 0 may have left with an answer before the group came to an end.
    fn hear_first(&mut self) {
        self.worker.step();
        self.left = self.said_leaving(0).unwrap_or_default();
    }
}

/// A seat that is left without a word, because of a panic or a lost process. The others notice.
impl Drop for Seat {
    fn drop(&mut self) {
        // Threads that read from a lost process never end, so they are not waited for.
        self.guard.take().into_iter().for_each(std::mem::forget);
        for stream in &self.streams {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// Does work in which searches are shared with the other processes, which do the same work. Returns the seat, too.
pub fn take_part<T>(seat: Seat, work: impl FnOnce() -> T) -> (T, Seat) {
    SEAT.with_borrow_mut(|own| *own = Some(seat));
    let result = work();
    let seat = SEAT.take().expect("a seat is given back after each search");
    (result, seat)
}

/// Whether this thread has a seat.
pub fn is_shared() -> bool {
    SEAT.with_borrow(Option::is_some)
}

/// A seat that is in use. It is given back even if the work is left early.
struct InUse(Option<Seat>);

impl Drop for InUse {
    fn drop(&mut self) {
        let seat = self.0.take();
        SEAT.with_borrow_mut(|own| *own = seat);
    }
}

/// Uses the seat of this thread, if it has one.
pub fn with_seat<T>(work: impl FnOnce(&mut Seat) -> T) -> Option<T> {
    let mut seat = InUse(Some(SEAT.take()?));
    seat.0.as_mut().map(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Head;

    #[test]
    fn states_of_a_step_wait_until_it_begins() {
        let mut places = Place::group(2).expect("there are ports");
        let (second, first) = (places.pop().expect("there are two"), places.pop().expect("there are two"));
        let limits = Limits::unlimited(1);
        let part = Head::new(3 << 40, true, 0, 0).word();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut seat = second.sit_down();
                for _ in 0..2 {
                    // The state is new to its owner the first time, and still waits the second time.
                    seat.begin_step();
                    seat.send_states(0, vec![part, 5]);
                    seat.exchange(Vec::new(), &limits).expect("the first one takes part");
                    seat.settle(&limits).expect("it takes part");
                }
            });
            let mut seat = first.sit_down();
            for step in 0..2 {
                // What comes before this message on the connection has arrived with it.
                seat.exchange(Vec::new(), &limits).expect("the second one takes part");
                assert_eq!(seat.share.borrow().len(), step, "step {step} has not begun here");
                seat.begin_step();
                seat.settle(&limits).expect("it takes part");
                assert_eq!(seat.share.borrow().len(), 1);
            }
        });
    }

    #[test]
    fn a_process_that_is_stopped_is_not_just_lost() {
        let mut places = Place::group(2).expect("there are ports");
        let (second, first) = (places.pop().expect("there are two"), places.pop().expect("there are two"));
        std::thread::scope(|scope| {
            let how = Leaving { is_stopped: true, is_complete: false };
            // It does not wait for the first one, which works on something alone.
            let stop = Arc::new(AtomicBool::new(true));
            scope.spawn(move || second.sit_down().leave(how, &stop, Duration::ZERO));
            let mut seat = first.sit_down();
            while seat.check().is_ok() {
                std::thread::yield_now();
            }
            let lost = seat.lost().expect("the other one has left");
            assert_eq!(lost.to_string(), "process 1 was stopped by its user");
        });
    }
}
