use super::*;
use rustix::fs::{CWD, FileType, Mode};
use std::io::Read;
use std::os::unix::fs::symlink;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be created")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("the file exists")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("the file exists").mode() & 0o7777
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_replaced_not_overwritten() {
    let folder = folder();
    let path = folder.path().join("x");
    write(&path, b"old text").expect("a new file");
    let mut reader = File::open(&path).expect("the file exists");
    write(&path, b"new").expect("written again");
    let mut seen = String::new();
    reader.read_to_string(&mut seen).expect("the old file is still complete");
    assert_eq!((seen.as_str(), text(&path).as_str()), ("old text", "new"));
    assert_eq!(names(folder.path()), ["x"], "nothing is left over");
}

#[test]
fn modes_are_kept_and_new_files_have_the_usual_mode() {
    let folder = folder();
    let path = folder.path().join("x");
    for wanted in [0o640, 0o600, 0o755, 0o666] {
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(wanted)).expect("we own the file");
        write(&path, b"new").expect("written");
        assert_eq!((mode(&path), text(&path).as_str()), (wanted, "new"));
    }
    let (ours, plain) = (folder.path().join("a"), folder.path().join("b"));
    write(&ours, b"").expect("written");
    fs::write(&plain, "").expect("written");
    assert_eq!(mode(&ours), mode(&plain));
}

#[test]
fn links_are_followed() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("d")).expect("a folder");
    fs::write(at("d/real"), "old").expect("a file");
    symlink("d/real", at("link")).expect("a link");
    symlink("link", at("link to link")).expect("a link");
    symlink("d/none", at("dangling")).expect("a link");
    symlink("round", at("round")).expect("a link");
    write(&at("link to link"), b"new").expect("written");
    write(&at("dangling"), b"made").expect("written");
    assert_eq!((text(&at("d/real")).as_str(), text(&at("d/none")).as_str()), ("new", "made"));
    for link in ["link", "link to link", "dangling"] {
        assert!(fs::symlink_metadata(at(link)).expect("it exists").is_symlink(), "{link}");
    }
    assert!(write(&at("round"), b"").is_err());
    assert_eq!(names(&at("d")), ["none", "real"]);
}

#[test]
fn a_failed_write_is_an_error_and_leaves_nothing_behind() {
    let folder = folder();
    assert!(write(folder.path(), b"x").is_err(), "a folder");
    let error = write(&folder.path().join("none/x"), b"x").expect_err("the folder does not exist");
    assert_eq!((error.kind(), error.raw_os_error().is_some()), (io::ErrorKind::NotFound, true), "{error}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(&path, "old").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("we own the file");
    // The superuser may write any file.
    let may = OpenOptions::new().write(true).open(&path).is_ok();
    assert_eq!(write(&path, b"new").is_ok(), may);
    assert_eq!(text(&path), if may { "new" } else { "old" });
    assert_eq!((mode(&path), names(folder.path()).len()), (0o444, 1));
}

#[test]
fn devices_are_written_directly() {
    write(Path::new("/dev/null"), b"x").expect("written");
    assert!(!fs::metadata("/dev/null").expect("it exists").is_file());
    assert!(write(Path::new("/dev/full"), b"x").is_err() || !Path::new("/dev/full").exists());
}

#[test]
fn a_pipe_without_a_reader_is_an_error() {
    let folder = folder();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let error = write(&path, b"x").expect_err("no process reads it");
    assert!(error.to_string().contains("no process reads this pipe"), "{error}");
    // More than a pipe holds, so that the writer has to wait for the reader.
    let long = "x".repeat(1 << 20);
    let reader = std::thread::spawn({
        let path = path.clone();
        move || text(&path)
    });
    while let Err(error) = write(&path, long.as_bytes()) {
        // The reader had not opened it yet.
        assert!(error.to_string().contains("no process reads this pipe"), "{error}");
    }
    assert!(reader.join().expect("read") == long);
}

#[test]
fn open_files_are_written_in_place() {
    let folder = folder();
    let path = folder.path().join("x");
    let mut file = File::create(&path).expect("a file");
    file.write_all(b"first ").expect("written");
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    if Path::new(&name).exists() {
        write(Path::new(&name), b"second").expect("written");
        assert_eq!(text(&path), "first second");
        let (open, there) = (file.metadata().expect("open"), fs::metadata(&path).expect("it exists"));
        assert_eq!(open.ino(), there.ino());
    }
}

#[test]
fn paths_to_the_same_file_are_recognised() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("d")).expect("a folder");
    fs::write(at("x"), "").expect("a file");
    fs::write(at("y"), "").expect("a file");
    fs::hard_link(at("x"), at("hard")).expect("a hard link");
    symlink("x", at("soft")).expect("a link");
    symlink("none", at("dangling")).expect("a link");
    symlink("d", at("e")).expect("a link");
    for (a, b, same) in [
        ("x", "./x", true),
        ("x", "d/../x", true),
        ("x", "hard", true),
        ("x", "soft", true),
        ("x", "y", false),
        ("x", "none", false),
        ("none", "./none", true),
        ("none", "d/../none", true),
        ("none", "dangling", true),
        ("none", "other", false),
        ("d/none", "e/none", true),
        ("d/none", "none", false),
        ("no/where", "no/where", true),
        ("no/where", "no/./where", true),
        ("no/where", "no/there", false),
    ] {
        assert_eq!(Identity::of(&at(a)) == Identity::of(&at(b)), same, "{a} and {b}");
    }
}
