//! The engine without a mount: what each request leaves in the resolver, in the handler and in the
//! tables of open files.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use pinpath_fuse::dispatch::{Engine, LookupReply, SetAttrArgs};
use pinpath_fuse::{Errno, FileType, Fit, Inode, Name, Operation, Request};
use support::memory::{FIRST_INO, Memory};

const REQ: Request = Request { unique: 1, uid: 0, gid: 0, pid: 1 };

fn name(name: &str) -> &Name {
    Name::new(name).unwrap()
}

fn engine(prepare: impl FnOnce(&mut Memory)) -> Engine<Memory> {
    let mut memory = Memory::default();
    prepare(&mut memory);
    Engine::new(memory)
}

fn lookup(engine: &Engine<Memory>, parent: Inode, child: &str) -> Result<Inode, Errno> {
    match engine.lookup(&REQ, parent, name(child))? {
        LookupReply::Entry(entry) => Ok(entry.node),
        LookupReply::Nothing(_) => Err(Errno::ENOENT),
    }
}

fn path(engine: &Engine<Memory>, inode: Inode) -> String {
    engine
        .resolver()
        .path(inode)
        .map_or_else(|error| format!("{error:?}"), |path| path.display().to_string())
}

#[test]
fn every_answer_with_an_entry_counts_once_and_an_error_not_at_all() {
    let engine = engine(|memory| {
        memory.put("file", FileType::Regular, b"x");
    });
    let count = |inode| engine.resolver().lookup_count(inode);

    let file = lookup(&engine, Inode::ROOT, "file").unwrap();
    assert_eq!(count(file), Some(1));
    assert_eq!(lookup(&engine, Inode::ROOT, "file").unwrap(), file);
    assert_eq!(count(file), Some(2));

    assert_eq!(lookup(&engine, Inode::ROOT, "missing"), Err(Errno::ENOENT));
    assert_eq!(engine.resolver().stats().nodes, 2, "a failed look-up leaves no node");

    let dir = engine.mkdir(&REQ, Inode::ROOT, name("dir"), 0o755, 0).unwrap().node;
    assert_eq!(count(dir), Some(1));
    assert_eq!(engine.mkdir(&REQ, Inode::ROOT, name("dir"), 0o755, 0), Err(Errno::EEXIST));
    assert_eq!(count(dir), Some(1));

    let link = engine.symlink(&REQ, dir, name("link"), "target".as_ref()).unwrap().node;
    assert_eq!(count(link), Some(1));

    let (made, open) = engine.create(&REQ, dir, name("made"), 0o644, 0, 0).unwrap();
    assert_eq!(count(made.node), Some(1));
    engine.release(&REQ, made.node, open.handle).unwrap();

    let linked = engine.link(&REQ, file, dir, name("hard")).unwrap();
    assert_eq!(linked.node, file, "the same node under its old id");
    assert_eq!(count(file), Some(3));
    let paths = engine.resolver().paths(file);
    assert_eq!(paths, [std::path::Path::new("file"), std::path::Path::new("dir/hard")]);

    for (inode, count) in [(file, 3), (dir, 1), (link, 1), (made.node, 1)] {
        engine.forget(inode, count);
    }
    engine.resolver().prune();
    while engine.resolver().reclaim() > 0 {}
    assert_eq!(engine.resolver().stats().nodes, 1, "the root");
}

#[test]
fn programs_see_the_handlers_inode_number_and_the_kernel_another() {
    let engine = engine(|memory| {
        memory.put("file", FileType::Regular, b"");
    });
    let LookupReply::Entry(entry) = engine.lookup(&REQ, Inode::ROOT, name("file")).unwrap() else {
        panic!()
    };
    assert_eq!(entry.attr.ino, FIRST_INO + 1);
    assert_ne!(entry.node.raw(), entry.attr.ino);
    let (attr, _) = engine.getattr(&REQ, entry.node, None).unwrap();
    assert_eq!(attr.ino, FIRST_INO + 1);
}

/// The names in an answer to READDIRPLUS, with the node ids.
fn listed(mut bytes: &[u8]) -> Vec<(String, u64)> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let node = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
        let len = u32::from_ne_bytes(bytes[144..148].try_into().unwrap()) as usize;
        entries.push((String::from_utf8(bytes[152..152 + len].to_vec()).unwrap(), node));
        bytes = &bytes[(152 + len).next_multiple_of(8)..];
    }
    entries
}

#[test]
fn a_listing_counts_exactly_what_was_sent() {
    let engine = engine(|memory| {
        for i in 0..100 {
            memory.put(format!("file{i:03}"), FileType::Regular, b"");
        }
    });
    let dir = engine.opendir(&REQ, Inode::ROOT, 0).unwrap().handle;
    // Each entry takes 160 bytes: ten fit, and an eleventh doesn't quite.
    let mut out = Vec::new();
    engine.readdirplus(&REQ, Inode::ROOT, dir, 0, 10 * 160 + 159, &mut out).unwrap();
    let entries = listed(&out);
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0].0, "file000");
    assert_eq!(engine.resolver().stats().nodes, 11);
    for (_, node) in &entries {
        assert_eq!(engine.resolver().lookup_count(Inode::from_raw(*node)), Some(1));
    }
    // A second time, from the middle: five are known already.
    let mut out = Vec::new();
    engine.readdirplus(&REQ, Inode::ROOT, dir, 5, 1600, &mut out).unwrap();
    let again = listed(&out);
    assert_eq!(again[0], entries[5]);
    assert_eq!(engine.resolver().lookup_count(Inode::from_raw(again[0].1)), Some(2));
    assert_eq!(engine.resolver().stats().nodes, 16);

    // A handler that fails after it offered something has counted nothing.
    engine.handler().set_hook(|operation, _| match operation {
        Operation::ReadDirPlus => Err(Errno::EIO),
        _ => Ok(()),
    });
    assert_eq!(
        engine.readdirplus(&REQ, Inode::ROOT, dir, 20, 4096, &mut Vec::new()),
        Err(Errno::EIO)
    );
    assert_eq!(engine.resolver().stats().nodes, 16);
}

#[test]
fn a_plain_listing_makes_no_nodes() {
    let engine = engine(|memory| {
        for i in 0..10 {
            memory.put(format!("file{i}"), FileType::Regular, b"");
        }
    });
    let dir = engine.opendir(&REQ, Inode::ROOT, 0).unwrap().handle;
    let mut names = Vec::new();
    let mut push = |entry: pinpath_fuse::DirEntry<'_>| {
        if names.len() == 3 {
            return Fit::Full;
        }
        names.push(entry.name.to_vec());
        assert!(entry.ino >= FIRST_INO);
        Fit::Taken
    };
    engine.readdir(&REQ, Inode::ROOT, dir, 0, &mut push).unwrap();
    assert_eq!(names.len(), 3);
    assert_eq!(engine.resolver().stats().nodes, 1);
}

#[test]
fn without_readdirplus_the_names_are_listed() {
    let engine = engine(|memory| {
        memory.plus = false;
        memory.put("file", FileType::Regular, b"");
    });
    let dir = engine.opendir(&REQ, Inode::ROOT, 0).unwrap().handle;
    let mut out = Vec::new();
    engine.readdirplus(&REQ, Inode::ROOT, dir, 0, 4096, &mut out).unwrap();
    assert_eq!(listed(&out), [("file".to_owned(), 0)]);
    assert_eq!(engine.resolver().stats().nodes, 1);
}

#[test]
fn a_file_that_is_missing_is_stale_and_a_name_that_is_missing_is_missing() {
    let engine = engine(|memory| {
        memory.put("file", FileType::Regular, b"");
    });
    let file = lookup(&engine, Inode::ROOT, "file").unwrap();
    engine.handler().tree().remove(std::path::Path::new("file"));
    assert_eq!(engine.getattr(&REQ, file, None).unwrap_err(), Errno::ESTALE);
    assert_eq!(engine.open(&REQ, file, 0).unwrap_err(), Errno::ESTALE);
    assert_eq!(engine.setattr(&REQ, file, &SetAttrArgs::default()).unwrap_err(), Errno::ESTALE);
    assert_eq!(engine.link(&REQ, file, Inode::ROOT, name("l")).unwrap_err(), Errno::ESTALE);
    assert_eq!(lookup(&engine, Inode::ROOT, "file"), Err(Errno::ENOENT));
    assert_eq!(engine.unlink(&REQ, Inode::ROOT, name("file")).unwrap_err(), Errno::ENOENT);
    // The look-up was told that the name is gone, so the node has none any more.
    assert!(path(&engine, file).starts_with("Unlinked"));
}

#[test]
fn a_name_that_went_behind_the_mount_gives_way_to_another_name() {
    let engine = engine(|memory| {
        memory.put("a", FileType::Regular, b"1");
    });
    let a = lookup(&engine, Inode::ROOT, "a").unwrap();
    engine.link(&REQ, a, Inode::ROOT, name("b")).unwrap();
    assert_eq!(path(&engine, a), "a");
    engine.handler().tree().remove(std::path::Path::new("a"));
    assert_eq!(
        engine.getattr(&REQ, a, None).unwrap_err(),
        Errno::ESTALE,
        "so the kernel looks a up"
    );
    assert_eq!(lookup(&engine, Inode::ROOT, "a"), Err(Errno::ENOENT));
    assert_eq!(path(&engine, a), "b");
    assert!(engine.getattr(&REQ, a, None).is_ok());
}

#[test]
fn something_new_is_not_taken_for_what_had_the_name_before() {
    let engine = engine(|memory| {
        memory.put("name", FileType::Regular, b"");
    });
    let old = lookup(&engine, Inode::ROOT, "name").unwrap();
    engine.handler().tree().remove(std::path::Path::new("name"));
    let (new, _) = engine.create(&REQ, Inode::ROOT, name("name"), 0o644, 0, 0).unwrap();
    assert_ne!(new.node, old);
    assert!(path(&engine, old).starts_with("Unlinked"));
    assert_eq!(path(&engine, new.node), "name");
}

#[test]
fn a_panic_is_an_error_and_holds_nothing() {
    let engine = engine(|memory| {
        memory.put("dir", FileType::Directory, b"");
        memory.put("dir/file", FileType::Regular, b"");
    });
    let dir = lookup(&engine, Inode::ROOT, "dir").unwrap();
    let file = lookup(&engine, dir, "file").unwrap();
    let panics = Arc::new(AtomicBool::new(true));
    let on = panics.clone();
    engine.handler().set_hook(move |_, _| {
        assert!(!on.load(SeqCst), "on purpose");
        Ok(())
    });
    assert_eq!(engine.getattr(&REQ, file, None).unwrap_err(), Errno::EIO);
    assert_eq!(lookup(&engine, dir, "file"), Err(Errno::EIO));
    assert_eq!(
        engine.rename(&REQ, Inode::ROOT, name("dir"), Inode::ROOT, name("moved"), 0),
        Err(Errno::EIO)
    );
    assert_eq!(engine.unlink(&REQ, dir, name("file")), Err(Errno::EIO));
    assert_eq!(engine.link(&REQ, file, dir, name("l")), Err(Errno::EIO));
    panics.store(false, SeqCst);

    assert_eq!(engine.resolver().stats().leases, 0);
    assert_eq!(path(&engine, file), "dir/file", "the transaction was undone");
    assert_eq!(engine.resolver().lookup_count(file), Some(1));
    engine.rename(&REQ, Inode::ROOT, name("dir"), Inode::ROOT, name("moved"), 0).unwrap();
    assert_eq!(path(&engine, file), "moved/file");
}

#[test]
fn renames_and_removals_are_followed_only_when_they_were_done() {
    let engine = engine(|memory| {
        memory.put("a", FileType::Directory, b"");
        memory.put("a/in", FileType::Regular, b"");
        memory.put("b", FileType::Regular, b"");
    });
    let a = lookup(&engine, Inode::ROOT, "a").unwrap();
    let inside = lookup(&engine, a, "in").unwrap();
    let b = lookup(&engine, Inode::ROOT, "b").unwrap();
    let rename = |from, to, flags| {
        engine.rename(&REQ, Inode::ROOT, name(from), Inode::ROOT, name(to), flags)
    };

    assert_eq!(rename("a", "b", libc::RENAME_NOREPLACE), Err(Errno::EEXIST));
    assert_eq!(rename("missing", "b", 0), Err(Errno::ENOENT));
    assert_eq!(rename("a", "missing", libc::RENAME_EXCHANGE), Err(Errno::ENOENT));
    assert_eq!(
        rename("a", "b", libc::RENAME_EXCHANGE | libc::RENAME_NOREPLACE),
        Err(Errno::EINVAL)
    );
    assert_eq!(engine.rmdir(&REQ, Inode::ROOT, name("a")), Err(Errno::ENOTEMPTY));
    assert_eq!((path(&engine, inside), path(&engine, b)), ("a/in".into(), "b".into()));

    rename("a", "b", libc::RENAME_EXCHANGE).unwrap();
    assert_eq!((path(&engine, inside), path(&engine, b)), ("b/in".into(), "a".into()));
    rename("a", "c", 0).unwrap();
    assert_eq!(path(&engine, b), "c");
    engine.unlink(&REQ, a, name("in")).unwrap();
    assert!(path(&engine, inside).starts_with("Unlinked"));
    assert_eq!(engine.resolver().stats().leases, 0);
}

#[test]
fn a_directory_moved_behind_the_mount_keeps_its_node() {
    let engine = engine(|memory| {
        memory.identities = true;
        memory.put("d", FileType::Directory, b"");
        memory.put("d/old", FileType::Directory, b"");
        memory.put("d/old/file", FileType::Regular, b"");
    });
    let d = lookup(&engine, Inode::ROOT, "d").unwrap();
    let dir = lookup(&engine, d, "old").unwrap();
    let file = lookup(&engine, dir, "file").unwrap();
    engine.handler().move_tree("d/old", "new");
    assert_eq!(lookup(&engine, Inode::ROOT, "new").unwrap(), dir);
    assert_eq!(path(&engine, file), "new/file");
    assert_eq!(engine.resolver().lookup_count(dir), Some(2));
}

#[test]
fn a_directory_seen_twice_is_two_nodes() {
    let engine = engine(|memory| {
        memory.identities = true;
        memory.seen_twice = true;
        memory.put("d", FileType::Directory, b"");
        let same = memory.tree().get(std::path::Path::new("d")).unwrap().clone();
        memory.tree().insert("bound".into(), same);
    });
    let d = lookup(&engine, Inode::ROOT, "d").unwrap();
    let bound = lookup(&engine, Inode::ROOT, "bound").unwrap();
    assert_ne!(d, bound);
    assert_eq!((path(&engine, d), path(&engine, bound)), ("d".into(), "bound".into()));
}

#[test]
fn a_hard_link_made_behind_the_mount_is_the_same_node() {
    let engine = engine(|memory| {
        memory.identities = true;
        memory.put("a", FileType::Regular, b"");
        let same = memory.tree().get(std::path::Path::new("a")).unwrap().clone();
        memory.tree().insert("b".into(), same);
    });
    let a = lookup(&engine, Inode::ROOT, "a").unwrap();
    assert_eq!(lookup(&engine, Inode::ROOT, "b").unwrap(), a);
    assert_eq!(engine.resolver().lookup_count(a), Some(2));
}

#[test]
fn handles_end_with_release_and_wrong_ones_are_refused() {
    let engine = engine(|memory| {
        memory.put("file", FileType::Regular, b"content");
    });
    let file = lookup(&engine, Inode::ROOT, "file").unwrap();
    let handle = engine.open(&REQ, file, 0).unwrap().handle;
    let mut buf = [0; 16];
    assert_eq!(engine.read(&REQ, file, handle, 0, &mut buf), Ok(7));
    assert_eq!(&buf[..7], b"content");
    for wrong in [0, handle + 1, u64::MAX] {
        assert_eq!(engine.read(&REQ, file, wrong, 0, &mut buf), Err(Errno::EBADF));
        assert_eq!(engine.getattr(&REQ, file, Some(wrong)).unwrap_err(), Errno::EBADF);
    }
    engine.release(&REQ, file, handle).unwrap();
    assert_eq!(engine.release(&REQ, file, handle), Err(Errno::EBADF));
    assert_eq!(engine.read(&REQ, file, handle, 0, &mut buf), Err(Errno::EBADF));
    assert_eq!(engine.handler().released.load(SeqCst), 1);
}

/// The kernel looks a name up again without a lock. Were the handler's answer of before a rename
/// given to the resolver after it, the name would go back to the file that lost it.
#[test]
fn a_lookup_does_not_undo_a_rename_that_overtakes_it() {
    let engine = Arc::new(engine(|memory| {
        memory.identities = true;
        memory.put("a", FileType::Regular, b"a");
        memory.put("b", FileType::Regular, b"b");
    }));
    let a = lookup(&engine, Inode::ROOT, "a").unwrap();
    let b = lookup(&engine, Inode::ROOT, "b").unwrap();

    // The look-up of b pauses with the handler's answer ready, until the rename is done, or, as it
    // should, waits for the look-up.
    let renamed = Arc::new(AtomicBool::new(false));
    let (looking, started) = std::sync::mpsc::channel();
    let done = renamed.clone();
    engine.handler().set_hook(move |operation, path| {
        if operation == Operation::Lookup && path.as_os_str() == "b" {
            let _ = looking.send(());
            for _ in 0..100 {
                if done.load(SeqCst) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    });
    let renaming = {
        let (engine, renamed) = (engine.clone(), renamed.clone());
        std::thread::spawn(move || {
            started.recv().unwrap();
            engine.rename(&REQ, Inode::ROOT, name("a"), Inode::ROOT, name("b"), 0).unwrap();
            renamed.store(true, SeqCst);
        })
    };
    let seen = lookup(&engine, Inode::ROOT, "b").unwrap();
    renaming.join().unwrap();
    assert!(seen == b || seen == a);
    assert_eq!(path(&engine, a), "b");
    assert!(path(&engine, b).starts_with("Unlinked"), "{}", path(&engine, b));
}
