//! Processes and strangers that meet on this machine.

use super::*;
use rustix::net::{self, AddressFamily, SocketType};
use std::io::Write;
use std::sync::Mutex;

fn meeting(addresses: &[String], index: usize, version: &str) -> Meeting {
    let (version, secret) = (version.to_owned(), "00ff".to_owned());
    let patience = Duration::from_secs(10);
    Meeting { addresses: addresses.to_vec(), index, version, secret, hosts: None, patience }
}

/// Lets processes with these versions meet.
fn meet(versions: &[&str]) -> Vec<Result<usize, String>> {
    let listeners: Vec<TcpListener> =
        versions.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a port")).collect();
    let address = |listener: &TcpListener| listener.local_addr().expect("it listens").to_string();
    let addresses: Vec<String> = listeners.iter().map(address).collect();
    thread::scope(|scope| {
        let run = |(index, listener)| {
            let meeting = meeting(&addresses, index, versions[index]);
            scope.spawn(move || meeting.meet(listener, &|| None))
        };
        let runs: Vec<_> = listeners.iter().enumerate().map(run).collect();
        let runs = runs.into_iter().map(|run| run.join().expect("meeting does not panic"));
        runs.map(|met| met.map(|all| all.iter().flatten().count()).map_err(|e| e.to_string())).collect()
    })
}

#[test]
fn every_byte_counts_for_the_version() {
    let bytes = vec![7_u8; 1000];
    let hash = |bytes: &[u8]| fingerprint(&mut bytes.chunks(96).map(<[u8]>::to_vec));
    for changed in [0, 95, 96, 999] {
        let mut other = bytes.clone();
        other[changed] ^= 1;
        assert_ne!(hash(&other), hash(&bytes), "byte {changed}");
    }
}

#[test]
fn all_meet_all_others() {
    for processes in 1..=4 {
        assert_eq!(meet(&vec!["1.0 a"; processes]), vec![Ok(processes - 1); processes]);
    }
}

#[test]
fn versions_are_compared_before_work_begins() {
    let met = meet(&["1.0 a", "1.0 b"]);
    assert_eq!(met[0], Err("process 1 runs Palisade 1.0 b, and this one runs 1.0 a".to_owned()));
    assert_eq!(met[1], Err("process 0 runs Palisade 1.0 a, and this one runs 1.0 b".to_owned()));
}

/// Addresses at which these listeners listen.
fn addresses(listeners: &[TcpListener]) -> Vec<String> {
    listeners.iter().map(|listener| listener.local_addr().expect("it listens").to_string()).collect()
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("there is a port")
}

#[test]
fn everyone_hears_why_a_process_refuses() {
    // Process 2 has another version, and process 3 never comes.
    let listeners = [listener(), listener(), listener()];
    let mut addresses = addresses(&listeners);
    addresses.push("127.0.0.1:1".to_owned());
    let met = thread::scope(|scope| {
        let versions = ["1", "1", "2"];
        let run = |(index, listener)| {
            let meeting = meeting(&addresses, index, versions[index]);
            scope.spawn(move || meeting.meet(listener, &|| None))
        };
        let runs: Vec<_> = listeners.iter().enumerate().map(run).collect();
        let runs = runs.into_iter().map(|run| run.join().expect("meeting does not panic"));
        runs.map(|met| met.expect_err("they do not agree").to_string()).collect::<Vec<_>>()
    });
    for error in met {
        assert!(error.contains("runs Palisade"), "{error}");
    }
}

#[test]
fn a_process_that_cannot_listen_says_so() {
    let listeners = [listener(), listener()];
    let addresses = addresses(&listeners);
    let met = thread::scope(|scope| {
        let second = meeting(&addresses, 1, "1");
        let met = scope.spawn(|| meeting(&addresses, 0, "1").meet(&listeners[0], &|| None));
        let refused = second.listen().expect_err("the port is taken");
        assert!(matches!(refused, ConnectError::CannotListen(..)), "{refused}");
        met.join().expect("meeting does not panic")
    });
    let error = met.expect_err("process 1 is missing").to_string();
    assert!(error.starts_with("process 1 cannot take part: cannot listen at "), "{error}");
}

#[test]
fn whoever_is_stopped_stops_the_others() {
    let listeners = [listener(), listener()];
    let mut addresses = addresses(&listeners);
    addresses.push("127.0.0.1:1".to_owned());
    let (first, second) = (meeting(&addresses, 0, "1"), meeting(&addresses, 1, "1"));
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| first.meet(&listeners[0], &|| None));
        listeners[1].set_nonblocking(true).expect("it can be");
        // It is stopped once it is connected. Before that, there is nobody to inform.
        let mut gathering = Gathering::new(&second, &|| Some(ConnectError::Stopped));
        while !gathering.contacts[0].is_met() {
            gathering.listen().expect("nobody refuses");
            gathering.call(Instant::now() + GREETING);
            thread::yield_now();
        }
        let met = gathering.come_together(&listeners[1]);
        gathering.refuse(met.as_ref().expect_err("it is stopped"));
        (first.join().expect("meeting does not panic"), met)
    });
    assert!(matches!(second, Err(ConnectError::Stopped)), "{second:?}");
    assert!(matches!(first, Err(ConnectError::StoppedElsewhere(1))), "{first:?}");
}

#[test]
fn slow_strangers_keep_nobody_waiting() {
    let listeners = [listener(), listener()];
    let addresses = addresses(&listeners);
    let connect = |address: &String| TcpStream::connect(address).expect("it listens");
    let mut strangers: Vec<TcpStream> = (0..20).map(|_| connect(&addresses[0])).collect();
    strangers.iter_mut().for_each(|stranger| stranger.write_all(b"pali").expect("it reads"));
    let met = thread::scope(|scope| {
        let run = |index: usize| {
            let meeting = Meeting { patience: GREETING / 2, ..meeting(&addresses, index, "1") };
            let listener = &listeners[index];
            scope.spawn(move || meeting.meet(listener, &|| None))
        };
        [run(1), run(0)].map(|run| run.join().expect("meeting does not panic"))
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn a_slow_answer_does_not_keep_a_process_from_giving_up() {
    let (impostor, own) = (listener(), listener());
    let addresses =
        addresses(&[impostor.try_clone().expect("it can be cloned"), own.try_clone().expect("it can")]);
    let second = Meeting { patience: Duration::from_millis(300), ..meeting(&addresses, 1, "1") };
    let met = thread::scope(|scope| {
        let met = scope.spawn(|| second.meet(&own, &|| None));
        let (mut stream, _) = impostor.accept().expect("it is called");
        stream.write_all(b"pali").expect("it reads");
        let met = met.join().expect("meeting does not panic");
        drop(stream);
        met
    });
    assert!(matches!(met, Err(ConnectError::Unreachable { process: 0, .. })), "{met:?}");
}

#[test]
fn a_process_may_come_again_before_all_are_there() {
    let listeners = [listener(), listener()];
    let addresses = addresses(&listeners);
    let first = meeting(&addresses, 0, "1");
    let mut gathering = Gathering::new(&first, &|| None);
    listeners[0].set_nonblocking(true).expect("it can be");
    for _ in 0..2 {
        let mut second = TcpStream::connect(&addresses[0]).expect("it listens");
        second
            .write_all(format!("{}\n", meeting(&addresses, 1, "1").greeting().line()).as_bytes())
            .expect("it reads");
        while !gathering.contacts[1].is_met() {
            gathering.accept(&listeners[0]).expect("nobody refuses");
        }
        drop(second);
        while gathering.contacts[1].is_met() {
            gathering.listen().expect("nobody refuses");
        }
    }
}

#[test]
fn strangers_are_not_let_in() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens").to_string();
    let nobody = "127.0.0.1:1".to_owned();
    let addresses = vec![address.clone(), nobody];
    let first = Meeting { patience: Duration::from_millis(300), ..meeting(&addresses, 0, "1") };
    let met = thread::scope(|scope| {
        let met = scope.spawn(|| first.meet(&listener, &|| None));
        let mut stranger = TcpStream::connect(&address).expect("it listens");
        stranger.write_all(b"palisade 1 2 wrong 1\n").expect("it reads");
        let mut noise = TcpStream::connect(&address).expect("it listens");
        noise.write_all(b"GET / HTTP/1.1\n").expect("it reads");
        met.join().expect("meeting does not panic")
    });
    assert!(matches!(met, Err(ConnectError::Unreachable { process: 1, .. })), "{met:?}");
}

/// Calls from an address of this machine, and says something.
fn call_from(caller: [u8; 4], address: &str, says: &str) -> TcpStream {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are sockets");
    net::bind(&socket, &SocketAddr::from((caller, 0))).expect("it is an address of this machine");
    net::connect(&socket, &address.parse::<SocketAddr>().expect("it is an address")).expect("it listens");
    let mut stream = TcpStream::from(socket);
    stream.write_all(says.as_bytes()).expect("it reads");
    stream
}

#[test]
#[cfg(target_os = "linux")]
fn only_hosts_of_the_group_can_end_the_start() {
    let other_version = "palisade 1 2 00ff 2\n";
    let check = |caller: [u8; 4], says: &str, ends_the_start: bool| {
        let listeners = [listener(), listener()];
        let addresses = addresses(&listeners);
        let hosts = Some(BTreeSet::from([IpAddr::from([127, 0, 0, 1])]));
        let of = |index| Meeting { hosts: hosts.clone(), ..meeting(&addresses, index, "1") };
        let (first, second) = (of(0), of(1));
        let stranger = call_from(caller, &addresses[0], says);
        let ignored = Ignored::default();
        let met = thread::scope(|scope| {
            let met = scope.spawn(|| first.meet(&listeners[0], &ignored));
            if !ends_the_start {
                // The right one comes after the stranger.
                while ignored.0.lock().expect("nobody panics").is_empty() {
                    thread::yield_now();
                }
                second.meet(&listeners[1], &|| None).expect("they agree");
            }
            met.join().expect("meeting does not panic")
        });
        drop(stranger);
        assert_eq!(met.is_err(), ends_the_start, "{caller:?} says {says:?}: {met:?}");
        ignored.0.into_inner().expect("nobody panics")
    };
    let why = "is not on a host of the group, and does not belong to it: process 1 ";
    let ignored = check([127, 0, 0, 2], other_version, false);
    assert!(ignored[0].contains(&format!("{why}runs Palisade 2, and this one runs 1")), "{ignored:?}");
    let ignored = check([127, 0, 0, 2], "palisade 1 3 00ff 1\n", false);
    assert!(ignored[0].contains(&format!("{why}expects 3 processes")), "{ignored:?}");
    let ignored = check([127, 0, 0, 1], "GET / HTTP/1.1\n", false);
    assert!(ignored[0].starts_with("127.0.0.1:") && ignored[0].ends_with(" is not Palisade"), "{ignored:?}");
    check([127, 0, 0, 1], other_version, true);
}

/// Waits without end, and notes which strangers were ignored.
#[derive(Default)]
struct Ignored(Mutex<Vec<String>>);

impl Waiting for Ignored {
    fn gives_up(&self) -> Option<ConnectError> {
        None
    }

    fn ignores(&self, stranger: &str) {
        self.0.lock().expect("nobody panics").push(stranger.to_owned());
    }
}

#[test]
fn a_process_that_does_not_join_says_why() {
    for own in [0, 1] {
        let listeners = [listener(), listener()];
        let addresses = addresses(&listeners);
        let met = thread::scope(|scope| {
            let (first, second) = (meeting(&addresses, own, "1"), meeting(&addresses, 1 - own, "1"));
            let listener = &listeners[1 - own];
            let met = scope.spawn(move || second.meet(listener, &|| None));
            first.call_off("a.pal: no such file");
            met.join().expect("meeting does not panic")
        });
        let error = met.expect_err("a process is missing").to_string();
        assert_eq!(error, format!("process {own} cannot take part: a.pal: no such file"));
    }
}

#[test]
fn nobody_is_waited_for_without_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens").to_string();
    let nobody = "127.0.0.1:1".to_owned();
    for (index, addresses) in [(0, [address.clone(), nobody.clone()]), (1, [nobody, address])] {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let gives_up = || {
            let times = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            (times > 1).then_some(ConnectError::Stopped)
        };
        let met = meeting(&addresses, index, "1").meet(&listener, &gives_up);
        assert!(matches!(met, Err(ConnectError::Stopped)), "{met:?}");
    }
}
