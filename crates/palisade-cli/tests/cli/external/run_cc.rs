//! `palisade cc`: the cache, several compilers at once, what is not instrumented; `palisade doctor`.

use super::programs::{BUFFERING, compiled};
use crate::common::{Ran, Scratch};
use snapbox::str;
use std::path::{Path, PathBuf};

/// A folder with a program, and a compiler that does not optimise. The runtime, which these tests make several times,
/// is compiled the first time only; then the compiler copies its earlier result.
fn with_quick_compiler(name: &str) -> (Scratch, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new(name).file("t.c", BUFFERING);
    let kept = scratch.path("kept.o").display().to_string();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *' -o runtime.o '*) ;; *) exec gcc \"$@\" -O0 ;; esac\n\
         [ -e '{kept}' ] && exec cp '{kept}' runtime.o\n\
         gcc \"$@\" -O0 && cp runtime.o '{kept}'.$$ && mv '{kept}'.$$ '{kept}'\n"
    );
    let scratch = scratch.file("quick-gcc", script);
    let quick = scratch.path("quick-gcc");
    std::fs::set_permissions(&quick, std::fs::Permissions::from_mode(0o700)).expect("a mode can be set");
    (scratch, quick)
}

/// The cache and temporary folders belong to the user, wherever they are.
#[test]
fn no_other_users_cache_is_used() {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let (scratch, quick) = with_quick_compiler("run_cache_trust");
    let compile = |set: &[(&str, &Path)]| {
        let mut command = scratch.command(&["cc", "-o", "t", "t.c"]);
        command.env("CC", &quick);
        command.env_remove("PALISADE_CACHE").env_remove("XDG_CACHE_HOME").env_remove("HOME");
        command.envs(set.iter().copied());
        let ran = Ran::new(command.output().expect("the command can be started"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        scratch.run(&["run", "--robust", "-q", "--schedules", "50", "--no-save", "--", "./t"]).exits(1);
        ran.stderr
    };
    // The folder in which the tests run may be open to everyone; this one is not.
    let private = std::env::temp_dir().join(format!("palisade-cache-test-{}", std::process::id()));
    let folder = |name: &str, mode: u32| {
        let path = private.join(name);
        std::fs::create_dir_all(&path).expect("a folder can be made");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode can be set");
        path
    };
    let entries = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path)
            .map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
    };
    std::fs::DirBuilder::new().mode(0o700).create(&private).expect("a new folder can be made");
    // Without a home directory, nothing is left among the temporary files. These already contain an entry
    // with the old name.
    let temporary = folder("tmp", 0o700);
    std::fs::create_dir(temporary.join("palisade")).expect("a folder can be made");
    assert_eq!(compile(&[("TMPDIR", &temporary)]), "");
    assert_eq!(entries(&temporary), [temporary.join("palisade")]);
    assert_eq!(entries(&temporary.join("palisade")), [""; 0].map(PathBuf::from));
    // A home directory that cannot be written to, at least not by every user.
    let home = folder("home", 0o500);
    assert_eq!(compile(&[("HOME", &home)]), "");
    // With a home directory, the runtime is kept there once, and made again if it is damaged.
    let home = folder("home2", 0o755);
    let cache = home.join(".cache/palisade");
    assert_eq!(compile(&[("HOME", &home)]), "");
    let [entry] = entries(&cache).try_into().expect("one runtime");
    let content = std::fs::read(&entry).expect("it can be read");
    std::fs::write(&entry, b"damaged").expect("it can be damaged");
    // The compiler makes the same object wherever it runs.
    std::fs::remove_file(scratch.path("kept.o")).expect("the compiler has kept its result");
    assert_eq!(compile(&[("HOME", &home)]), "");
    assert_eq!(entries(&cache), std::slice::from_ref(&entry));
    assert_eq!(std::fs::read(&entry).expect("it can be read"), content);
    let mode = std::fs::metadata(&cache).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // A folder above it that is world-writable.
    let open = folder("open", 0o777);
    let warning = compile(&[("XDG_CACHE_HOME", &open)]);
    assert!(warning.starts_with("warning[cache-not-used]: cache: the cache is not used: "), "{warning}");
    std::fs::remove_dir_all(private).expect("the folder can be removed");
}

#[test]
fn two_compilers_at_once() {
    let (scratch, quick) = with_quick_compiler("run_cache_twice");
    let children: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let mut command = scratch.command(&["cc", "-o", name, "t.c"]);
            command.env("CC", &quick).env("PALISADE_CACHE", scratch.path("cache"));
            command.spawn().expect("the command can be started")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    for program in ["./a", "./b", "./c"] {
        scratch.run(&["run", "--robust", "-q", "--schedules", "50", "--no-save", "--", program]).exits(1);
    }
}

#[test]
fn what_is_not_instrumented_is_refused() {
    let scratch = compiled("run_refused", BUFFERING);
    scratch.run(&["run", "--", "/bin/true"]).exits(2).prints("").complains(str![[r#"
error[not-instrumented]: /bin/true: is not instrumented: [..]
...
"#]]);
    scratch.run(&["run", "--", "./nothing"]).exits(2).complains(str![[r#"
error[cannot-start]: ./nothing: cannot be started: [..]
...
"#]]);
    // Linked with the runtime, but compiled without it.
    let plain = std::process::Command::new("gcc")
        .current_dir(scratch.path("."))
        .args(["-c", "t.c", "-o", "t.o"])
        .status()
        .expect("gcc starts");
    assert!(plain.success());
    assert_eq!(scratch.run(&["cc", "t.o", "-o", "linked"]).code, Some(0));
    scratch.run(&["run", "--schedules", "3", "--", "./linked"]).exits(3).prints(str![[r#"
unknown  ./linked: 3 schedules, [..] events

not followed: this code was not compiled by `palisade cc`; what it does to memory is not seen
  t.o    here
...
"#]]);
    scratch.run(&["run", "--replay", "t.c"]).exits(2).complains(str![[r#"
error[malformed-schedule]: t.c: line 1: a schedule begins with `palisade schedule 1`

"#]]);
    assert_eq!(scratch.run(&["cc", "-static", "t.c"]).code, Some(2));
    assert_eq!(scratch.run(&["cc", "nothing.c"]).code, Some(2));
}

#[test]
fn doctor() {
    let scratch = Scratch::new("run_doctor");
    let ran = scratch.run(&["doctor"]).exits(0);
    assert!(ran.stdout.starts_with("ready\n") && ran.stdout.contains("fine     C, gcc"), "{}", ran.stdout);
    let json = scratch.run(&["doctor", "--format", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&json["command"], &json["verdict"]), (&"doctor".into(), &"ready".into()));
}
