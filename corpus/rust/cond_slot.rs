// A slot for one message, with a mutex and a condition variable.
// Source: C. A. R. Hoare, "Monitors: an operating system structuring concept", CACM 1974.
// broken_1: the receiver does not look again after a wait, which may end by itself.
// broken_2: the sender wakes nobody.
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Slot {
    message: Mutex<Option<u32>>,
    changed: Condvar,
}

impl Slot {
    fn send(&self, message: u32) {
        *self.message.lock().unwrap() = Some(message);
        #[cfg(not(broken_2))]
        self.changed.notify_one();
    }

    fn receive(&self) -> Option<u32> {
        let mut message = self.message.lock().unwrap();
        #[cfg(broken_1)]
        if message.is_none() {
            message = self.changed.wait(message).unwrap();
        }
        #[cfg(not(broken_1))]
        while message.is_none() {
            message = self.changed.wait(message).unwrap();
        }
        message.take()
    }
}

fn main() {
    let slot = Arc::new(Slot { message: Mutex::new(None), changed: Condvar::new() });
    let other = Arc::clone(&slot);
    let sender = thread::spawn(move || other.send(7));
    assert_eq!(slot.receive(), Some(7));
    sender.join().unwrap();
}
