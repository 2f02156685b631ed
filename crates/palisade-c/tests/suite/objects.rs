//! What bad pointers mean.

use crate::common::{module, threads, translated};
use palisade_c::{Objects, Problem};

#[test]
fn bad_pointers_are_explained() {
    let text = module("  store i32 1, ptr getelementptr (i8, ptr @a, i64 4)\n  ret void");
    let objects = translated(&text, &threads(&["f", "other"])).objects;
    let a = objects.iter().find(|object| object.name == "a").expect("the array is there");
    let key = |address: i64, log: i64| address * 8 + log;
    assert_eq!(Objects::decode(key(4100, 2)), (4100, 4));
    assert_eq!(objects.explain(key(0, 2)), Problem::Null { address: 0 });
    assert_eq!(objects.explain(key(8, 3)), Problem::Null { address: 8 });
    let outside = Problem::OutOfBounds { object: Some(a), offset: 12, size: 4 };
    assert_eq!(objects.explain(key(a.address + 12, 2)), outside);
    let before = Problem::OutOfBounds { object: Some(a), offset: -4, size: 4 };
    assert_eq!(objects.explain(key(a.address - 4, 2)), before);
    let mixed = Problem::MixedSize { object: a, offset: 2, size: 2 };
    assert_eq!(objects.explain(key(a.address + 2, 1)), mixed);
    assert_eq!(objects.at(a.address + 11), Some(a));
    assert_eq!(objects.at(a.address + 12), None);
    assert_eq!(a.cells, [(0, 2), (4, 2)]);
    let touched = |offset, size| -> Vec<&str> {
        a.touched(offset, size).iter().map(|part| part.name.as_str()).collect()
    };
    assert_eq!(touched(2, 2), ["a+0"]);
    assert_eq!(touched(2, 4), ["a+0", "a+4"]);
    assert_eq!(touched(4, 8), ["a+4", "a+8"]);
}
