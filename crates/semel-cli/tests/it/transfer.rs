//! `semel export` and `semel import`.

use std::path::PathBuf;
use std::process::Stdio;

use semel::{Claim, Outcome};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{on, ran, semel};
use crate::place::{Place, id};
use crate::records::{NAMES, fill, key, run};

crate::on_every_store! {
    an_import_brings_back_every_part_of_every_record
    an_import_may_be_run_again
    a_record_that_is_there_is_left_alone
    what_was_running_is_held_or_released_as_the_caller_says
    an_export_that_was_cut_goes_on_behind_its_last_whole_line
}

/// What somebody does to a line.
type Damage = fn(&mut String);

/// A folder with an export in it.
struct Exported {
    _folder: TempDir,
    path: PathBuf,
}

impl Exported {
    fn of(place: &Place) -> Self {
        let folder = tempfile::tempdir().expect("a folder for a test");
        let path = folder.path().join("semel.jsonl");
        let said = on(place, &format!("export --to {}", path.display()));
        assert!(said.err.contains("keep it as secret as the store"), "{}", said.err);
        said.fine();
        Self { _folder: folder, path }
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.path).expect("is text").lines().map(str::to_owned).collect()
    }

    fn rewrite(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.lines();
        change(&mut lines);
        std::fs::write(&self.path, lines.join("\n") + "\n").expect("is written");
    }

    fn import_to(&self, place: &Place, more: &str) -> crate::binary::Ran {
        on(place, &format!("import --from {} --json {more}", self.path.display()))
    }
}

/// The records of an export without what a store stamps itself.
fn records(place: &Place) -> Vec<Value> {
    let lines = on(place, "export").fine();
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("is JSON"));
    let stampless = |mut record: Value| {
        let object = record.as_object_mut()?;
        object.remove("crc")?;
        object.remove("version")?;
        object.remove("changed_at_us")?;
        Some(record)
    };
    records.filter_map(stampless).collect()
}

fn an_import_brings_back_every_part_of_every_record(place: &Place) {
    fill(place);
    let there = place.another();
    let report = Exported::of(place).import_to(&there, "").json();
    assert_eq!((&report["imported"], &report["were_running"]), (&NAMES.len().into(), &1.into()), "{report}");
    let (before, mut after) = (records(place), records(&there));
    assert_eq!((before.len(), after.len()), (NAMES.len(), NAMES.len()));
    for (before, after) in before.iter().zip(&mut after) {
        if let Some(running) = before["state"].get("running") {
            assert_eq!(after["state"]["held"]["reason"], json!({ "unknown": "imported" }));
            assert_eq!(after["state"]["held"]["steps"], running["steps"]);
            assert_eq!(after["state"]["held"]["grant"], running["grant"]);
            after["state"] = before["state"].clone();
        }
        assert_eq!(before, after);
    }
    // And what people are shown is the same, as far as it does not depend on the moment.
    for name in ["order-1", "order-2", "p-2", "p-3"] {
        let show = |place: &Place| {
            let mut shown = on(place, &format!("keys show {} --json --outcome", id(&key(name)))).json();
            for passing in ["version", "changed_at", "age_ms"] {
                shown[passing] = Value::Null;
            }
            shown
        };
        assert_eq!(show(place), show(&there));
    }
}

fn an_import_may_be_run_again(place: &Place) {
    fill(place);
    let (there, exported) = (place.another(), Exported::of(place));
    exported.import_to(&there, "").fine();
    let before = records(&there);
    let again = exported.import_to(&there, "").json();
    assert_eq!(
        (&again["imported"], &again["already_there"], &again["other_there"]),
        (&0.into(), &NAMES.len().into(), &0.into()),
        "{again}"
    );
    assert_eq!(before, records(&there));
}

fn a_record_that_is_there_is_left_alone(place: &Place) {
    fill(place);
    let there = place.another();
    there.with(async |semel| {
        let permit = run(&semel, Claim::new(&key("order-1"))).await;
        permit.complete(Outcome::success("its own")).await.expect("is completed");
    });
    let report = Exported::of(place).import_to(&there, "").json();
    assert_eq!((&report["other_there"], &report["imported"]), (&1.into(), &5.into()), "{report}");
    let shown = on(&there, &format!("keys show {} --outcome", id(&key("order-1")))).fine();
    assert!(shown.ends_with("its own\n"), "{shown}");
}

fn what_was_running_is_held_or_released_as_the_caller_says(place: &Place) {
    fill(place);
    let exported = Exported::of(place);
    for (how, state) in [("hold", "held"), ("release", "released")] {
        let there = place.another();
        exported.import_to(&there, &format!("--running {how}")).fine();
        let shown = on(&there, &format!("keys show {} --json", id(&key("order-3")))).json();
        assert_eq!((&shown["state"], &shown["reason"]), (&state.into(), &"imported".into()));
        assert_eq!(shown["steps"][0]["name"], "reserve");
    }
    assert!(on(place, "export").err.contains("warning: 1 record still running"), "the export warns");
}

fn an_export_that_was_cut_goes_on_behind_its_last_whole_line(place: &Place) {
    fill(place);
    let exported = Exported::of(place);
    let whole = exported.lines();
    let bytes = std::fs::read(&exported.path).expect("is there");
    // In the middle of a line, at the end of one, behind the header, and before the very last line.
    let ends: Vec<_> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for cut in [ends[2] + 40, ends[3], ends[0], ends[0] + 1, ends[ends.len() - 2]] {
        std::fs::write(&exported.path, &bytes[..cut]).expect("is cut");
        let error = exported.import_to(&place.another(), "").failed();
        assert!(error.contains("was cut") && error.contains("--resume") && error.contains("line"), "{error}");
        on(place, &format!("export --to {} --resume", exported.path.display())).fine();
        assert_eq!(exported.lines(), whole, "cut at {cut}");
    }
    let said = on(place, &format!("export --to {} --resume", exported.path.display()));
    assert!(said.err.contains("is complete: there is nothing to go on with"), "{}", said.err);
    assert_eq!(exported.lines(), whole);
}

#[test]
fn a_newer_version_is_refused_before_anything_is_written() {
    let place = Place::file();
    fill(&place);
    let exported = Exported::of(&place);
    exported.rewrite(|lines| lines[0] = lines[0].replace("\"version\":2", "\"version\":3"));
    let there = place.another();
    let error = exported.import_to(&there, "").failed();
    assert!(error.contains("version 3") && error.contains("upgrade semel"), "{error}");
    assert_eq!(on(&there, "stats --json").json()["records"], 0);
}

#[test]
fn a_damaged_line_is_named_and_nothing_is_imported() {
    let place = Place::file();
    fill(&place);
    let is_done = |line: &String| line.contains("eyJpZCI6ImNoXzEifQ==");
    let damages: [(&str, Damage); 4] = [
        ("does not match its crc", |line| *line = line.replace("eyJpZCI6", "eyJpZCI7")),
        ("does not match its crc", |line| *line = line.replace("\"attempt\":1", "\"attempt\":2")),
        ("damaged", |line| line.truncate(line.len() / 2)),
        ("damaged", |line| *line = line.replace("\"operation\"", "\"0peration\"")),
    ];
    for (what, damage) in damages {
        let exported = Exported::of(&place);
        let at = exported.lines().iter().position(is_done).expect("is exported");
        exported.rewrite(|lines| damage(&mut lines[at]));
        let there = place.another();
        let error = exported.import_to(&there, "").failed();
        assert!(error.contains(&format!("line {} ", at + 1)) && error.contains(what), "{error}");
        assert!(error.contains("nothing was imported"), "{error}");
        assert_eq!(on(&there, "stats --json").json()["records"], 0);
    }
}

#[test]
fn lines_that_are_missing_or_too_many_are_noticed() {
    let place = Place::file();
    fill(&place);
    let exported = Exported::of(&place);
    let whole = exported.lines();
    exported.rewrite(|lines| drop(lines.remove(2)));
    assert!(exported.import_to(&place.another(), "").failed().contains("lines are missing"));
    exported.rewrite(|lines| *lines = [whole.clone(), whole.clone()].concat());
    assert!(exported.import_to(&place.another(), "").failed().contains("two exports were joined"));
    exported.rewrite(|lines| *lines = whole[..3].to_vec());
    assert!(exported.import_to(&place.another(), "").failed().contains("was cut"));
    assert_eq!(exported.import_to(&place.another(), "--partial").json()["imported"], 2);
}

#[test]
fn a_line_that_was_edited_is_taken_without_its_crc() {
    let place = Place::file();
    fill(&place);
    let exported = Exported::of(&place);
    exported.rewrite(|lines| {
        let line = lines.iter_mut().find(|line| line.contains("try later")).expect("is exported");
        let mut record: Value = serde_json::from_str(line).expect("is JSON");
        record.as_object_mut().expect("is an object").remove("crc");
        record["state"]["released"]["reason"] = json!("edited");
        *line = record.to_string();
    });
    let there = place.another();
    exported.import_to(&there, "").fine();
    let shown = on(&there, &format!("keys show {} --json", id(&key("p-3")))).json();
    assert_eq!(shown["reason"], "edited");
}

#[test]
fn standard_input_is_imported_up_to_the_damaged_line_and_that_is_said() {
    let place = Place::file();
    fill(&place);
    let exported = Exported::of(&place);
    exported.rewrite(|lines| lines[4].truncate(30));
    let there = place.another();
    let input = std::fs::File::open(&exported.path).expect("is there");
    let said = ran(semel().arg("import").env("SEMEL_STORE", there.url()).stdin(Stdio::from(input)));
    let error = said.failed();
    assert!(error.contains("line 5 is damaged") && error.contains("3 records were written"), "{error}");
    assert_eq!(on(&there, "stats --json").json()["records"], 3);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let place = Place::file();
    fill(&place);
    let exported = Exported::of(&place);
    let before = exported.lines();
    let error = on(&place, &format!("export --to {}", exported.path.display())).failed();
    assert!(error.contains("is there already") && error.contains("--resume"), "{error}");
    assert_eq!(before, exported.lines());
    std::fs::write(&exported.path, "notes of mine\n").expect("is written");
    let error = on(&place, &format!("export --to {} --resume", exported.path.display())).failed();
    assert!(error.contains("no header of an export"), "{error}");
    assert_eq!(exported.lines(), ["notes of mine"]);
}

#[test]
fn nobody_else_may_read_an_export() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::file();
    let exported = Exported::of(&place);
    let mode = std::fs::metadata(&exported.path).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_export_of_one_kind_of_store_is_imported_by_another() {
    let (folder, server) = (Place::file(), Place::postgres());
    fill(&folder);
    assert_eq!(Exported::of(&folder).import_to(&server, "").json()["imported"], NAMES.len());
    let back = Place::redis();
    let report = Exported::of(&server).import_to(&back, "").json();
    assert_eq!((&report["imported"], &report["were_running"]), (&NAMES.len().into(), &0.into()), "{report}");
    assert_eq!(records(&server), records(&back));
}

#[test]
fn whoever_compares_fences_is_told_that_they_start_anew() {
    let place = Place::file();
    place.with(async |semel| {
        for number in 0..50 {
            let key = semel::Key::new("charge", &format!("order-{number}")).expect("is fine");
            run(&semel, Claim::new(&key)).await.complete(Outcome::success("x")).await.expect("is completed");
        }
    });
    let said = Exported::of(&place).import_to(&place.another(), "");
    assert!(said.err.contains("warning: fences start anew"), "{}", said.err);
    assert_eq!(said.json()["fences_start_anew"], true);
}
