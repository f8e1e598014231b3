//! The measurement of the engine and the memory store, beside two maps: rates, bytes a record, latency at the bound.

use anyhow::{Result, bail};
use hdrhistogram::Histogram;
use semel::store::MemoryStore;
use semel::{Decision, ErrorKind};

use crate::args::MemoryArgs;
use crate::callers::{CYCLES, REPLAYS, each, runtime};
use crate::contestants::{Contestant, Engine, LeanMap, PlainMap, StoreAlone, roomy};
use crate::counting;
use crate::inputs::{self, KEY_BYTES, Response};
use crate::process::{print_samples, samples_of};
use crate::report::{
    Bar, Case, ChartBar, Column, HUNDREDTHS, Metric, Page, Panel, Row, Rows, Sample, Samples, Shown, WHOLE,
    count, drive, float,
};
use crate::timing::{Stopwatch, processor_time};

const ENGINE: &str = "engine";
const STORE: &str = "store alone";
const MAP: &str = "DashMap, as usually written";
const LEAN: &str = "DashMap, lean";
const CONTESTANTS: [&str; 4] = [ENGINE, STORE, MAP, LEAN];
const THREADS: [u64; 2] = [1, 2];
const FOOTPRINT: &str = "footprint";
const NEW_CLAIM: &str = "new claim";
const HALF: &str = "half full";
const REFUSED: &str = "at the bound: refused";
/// The oldest done record is removed, and the new claim runs.
const FORGETS: &str = "at the bound: forgets";
/// Claims measured in each state of each round: few enough that half full stays half full, and that no table grows.
const CLAIMS: u64 = 5_000;
/// How many of them in a row, before the next state has its turn.
const IN_A_ROW: u64 = 250;

const KILO: Shown = Shown { factor: 1e-3, decimals: 0 };
const NANOS: Shown = Shown { factor: 1e3, decimals: 0 };

pub(crate) fn run(args: &MemoryArgs) -> Result<()> {
    let mut page = Page::new("memory", include_str!("pages/memory.md"), args)?;
    let cases = |threads| CONTESTANTS.map(|name| (Case::new(CYCLES, name).load(threads), ())).into();
    drive(args.run.rounds, &THREADS.map(cases), &mut page.rows, &mut |case, ()| windows(case, args))?;
    // Each in a process of its own: memory that another one freed would hide what it takes.
    let footprints = [STORE, MAP, LEAN].map(|name| (Case::new(FOOTPRINT, name), ())).into();
    drive(1, &[footprints], &mut page.rows, &mut |case, ()| {
        let samples = samples_of(&["footprint", case.contestant, &args.keys.to_string()])?;
        Ok(samples.into_iter().map(|sample| (case, sample)).collect())
    })?;
    // One caller on one thread: what is measured is the claim, and not callers that wait for each other.
    let runtime = runtime(1)?;
    let claims = vec![(Case::new(NEW_CLAIM, ENGINE), ())];
    drive(args.run.rounds, &[claims], &mut page.rows, &mut |case, ()| {
        let states = runtime.block_on(runtime.spawn(states(args.bound)))??;
        Ok(states.map(|state| (case.contestant(state.name), state.sample())).into())
    })?;
    page.bars = bars(&page.rows);
    describe(&mut page);
    page.publish(args.run.results.as_deref())
}

/// One round of one contestant: loads it, then measures replays at that size, and cycles from there on.
fn windows(case: Case, args: &MemoryArgs) -> Result<Samples> {
    match case.contestant {
        ENGINE => windows_of(Engine::new(roomy()), case, args),
        STORE => windows_of(StoreAlone::new(roomy()), case, args),
        LEAN => windows_of(LeanMap::new(), case, args),
        _ => windows_of(PlainMap::new(), case, args),
    }
}

fn windows_of<C: Contestant>(contestant: C, case: Case, args: &MemoryArgs) -> Result<Samples> {
    let tasks = usize::try_from(case.load)?;
    let runtime = runtime(tasks)?;
    let contestant = std::sync::Arc::new(contestant);
    let (keys, window) = (args.keys, args.window);
    runtime.block_on(each(&contestant, tasks, keys, |contestant, number| async move {
        contestant.cycle(number).await
    }))?;
    let mut replays = timed(window, || {
        runtime.block_on(each(&contestant, tasks, window, move |contestant, turn| async move {
            contestant.replay(inputs::scattered(turn, keys)).await.map(drop)
        }))
    })?;
    // What replays deferred is done before anything else is measured, so that it does not fall into the next window.
    let deferred = timed(window, || runtime.block_on(contestant.catch_up()))?;
    replays.extend(deferred.get(&Metric::CpuUs).map(|time| (Metric::DeferredCpuUs, *time)));
    let cycles = timed(window, || {
        runtime.block_on(each(&contestant, tasks, window, move |contestant, turn| async move {
            contestant.cycle(keys + turn).await
        }))
    })?;
    Ok(vec![(case.work(REPLAYS), replays), (case.work(CYCLES), cycles)])
}

fn timed(calls: u64, window: impl FnOnce() -> Result<()>) -> Result<Sample> {
    let (watch, ran) = (Stopwatch::start(), processor_time());
    window()?;
    let (took, ran) = (watch.elapsed(), processor_time().saturating_sub(ran));
    Ok(Sample::from([
        (Metric::PerSecond, float(calls) / took.as_secs_f64()),
        (Metric::CpuUs, ran.as_secs_f64() * 1e6 / float(calls)),
    ]))
}

/// Fills one contestant, in this process, and prints what that took.
pub(crate) fn run_footprint(contestant: &str, keys: u64) -> Result<()> {
    let sample = match contestant {
        STORE => fill(StoreAlone::new(roomy()), keys),
        MAP => fill(PlainMap::new(), keys),
        LEAN => fill(LeanMap::new(), keys),
        other => bail!("unknown contestant `{other}`: use `{STORE}`, `{MAP}` or `{LEAN}`"),
    }?;
    print_samples(&[sample])
}

fn fill<C: Contestant>(contestant: C, keys: u64) -> Result<Sample> {
    let runtime = runtime(1)?;
    let [resident, _] = counting::resident_bytes()?;
    counting::start();
    runtime.block_on(async {
        for number in 0..keys {
            contestant.cycle(number).await?;
        }
        anyhow::Ok(())
    })?;
    let allocated = counting::allocated_bytes() / float(keys);
    let [resident_after, _] = counting::resident_bytes()?;
    let resident = (resident_after - resident).max(0.0) / float(keys);
    drop(contestant);
    Ok(footprint(allocated, resident, float((KEY_BYTES + Response::new().encoded().len()) as u64)))
}

/// Bytes as asked of the allocator, as the process grew with the allocator's own rounding, and of what no store can do
/// without: the texts of the key and the outcome. The larger of the first two counts.
fn footprint(allocated: f64, resident: f64, payload: f64) -> Sample {
    Sample::from([
        (Metric::AllocatedBytes, allocated),
        (Metric::ResidentBytes, resident),
        (Metric::PayloadBytes, payload),
        (Metric::OverheadBytes, allocated.max(resident) - payload),
    ])
}

/// A store in one state, and how long new claims take in it.
struct State {
    name: &'static str,
    engine: Engine,
    filled: u64,
    spans: Histogram<u64>,
}

/// One round of new claims, in every state of a store of at most `bound` records.
async fn states(bound: u64) -> Result<[State; 3]> {
    let records = usize::try_from(bound)?;
    let bounded = || MemoryStore::builder().records_max(records);
    let mut states = [
        State::new(HALF, bounded().build(), bound / 2 - CLAIMS / 2)?,
        State::new(REFUSED, bounded().build(), bound)?,
        State::new(FORGETS, bounded().forget_oldest(std::time::Duration::ZERO).build(), bound)?,
    ];
    // A store that is filled between the others and dropped before the claims start: they find memory that was used
    // before, and the first touch of a page is not taken for the price of a claim.
    let ballast = Engine::new(bounded().build());
    for number in 0..bound {
        for state in states.iter().filter(|state| number < state.filled) {
            state.engine.cycle(number).await?;
        }
        ballast.cycle(number).await?;
    }
    drop(ballast);
    for start in (0..CLAIMS).step_by(usize::try_from(IN_A_ROW)?) {
        for state in &mut states {
            for number in start..start + IN_A_ROW {
                state.claim(state.filled + number).await?;
            }
        }
    }
    Ok(states)
}

impl State {
    fn new(name: &'static str, store: MemoryStore, filled: u64) -> Result<Self> {
        Ok(Self { name, engine: Engine::new(store), filled, spans: Histogram::new(3)? })
    }

    async fn claim(&mut self, number: u64) -> Result<()> {
        let watch = Stopwatch::start();
        let answer = self.engine.decision(number).await;
        let span = watch.elapsed();
        match (self.name, answer) {
            (HALF | FORGETS, Ok(Decision::Run(_))) => {}
            (REFUSED, Err(error)) if error.kind() == ErrorKind::Full => {}
            (name, Ok(decision)) => bail!("{name}: the answer to a new claim was {}", decision.as_str()),
            (name, Err(error)) => bail!("{name}: a new claim failed: {error}"),
        }
        Ok(self.spans.record(u64::try_from(span.as_nanos())?)?)
    }

    fn sample(&self) -> Sample {
        let micros = |quantile| float(self.spans.value_at_quantile(quantile)) / 1e3;
        Sample::from([(Metric::P50Us, micros(0.5)), (Metric::P99Us, micros(0.99))])
    }
}

fn bars(rows: &Rows) -> Vec<Bar> {
    let rates = [(ENGINE, REPLAYS, 1.0), (ENGINE, CYCLES, 1.0), (STORE, CYCLES, 1.5)];
    let rates = rates.into_iter().flat_map(|rate| THREADS.map(|threads| (rate, threads)));
    let rates = rates.map(|((contestant, work, wanted), threads)| {
        let case = Case::new(work, contestant).load(threads);
        let name = format!("{contestant}, {work}, {}", count(threads, "thread"));
        let bar = rows.at_least(name, wanted, case, case.contestant(MAP));
        let lean = rows.times(case, case.contestant(LEAN), Metric::PerSecond);
        Bar { found: format!("{} ({lean:.2}× lean)", bar.found), ..bar }
    });
    let overhead = rows.median(Case::new(FOOTPRINT, STORE), Metric::OverheadBytes);
    let name = "a settled record, beyond key and outcome".to_owned();
    let overhead = Bar::at_most(name, 256.0, overhead, " bytes");
    let claims = [REFUSED, FORGETS].map(|state| {
        let (state, half) = (Case::new(NEW_CLAIM, state), Case::new(NEW_CLAIM, HALF));
        let times = rows.times(state, half, Metric::P99Us);
        Bar::at_most(format!("p99 of a new claim, {state}"), 3.0, times, "× half full")
    });
    rates.chain([overhead]).chain(claims).collect()
}

fn describe(page: &mut Page) {
    page.own = &[ENGINE, STORE];
    page.value("key_bytes", KEY_BYTES.to_string());
    page.value("outcome_bytes", Response::new().encoded().len().to_string());
    let rates = || {
        let beside = |contestant| move |case: Case| (case, case.contestant(contestant));
        // Less processor time is faster, so the ratio is the other way round.
        let by_cpu = |contestant| move |case: Case| (case.contestant(contestant), case);
        [
            Column::contestant(),
            Column::load("threads"),
            Column::median("k/s", Metric::PerSecond, KILO),
            Column::range(Metric::PerSecond, KILO),
            Column::median("CPU ns", Metric::CpuUs, NANOS),
            Column::times("× usual", Metric::PerSecond, beside(MAP)),
            Column::times("by CPU", Metric::CpuUs, by_cpu(MAP)),
            Column::times("× lean", Metric::PerSecond, beside(LEAN)),
            Column::times("by CPU", Metric::CpuUs, by_cpu(LEAN)),
        ]
    };
    page.table(CYCLES, &rates());
    page.table(REPLAYS, &rates());
    let deferred = page.rows.of(REPLAYS).filter(|row| row.case.contestant == ENGINE);
    let deferred: Vec<String> = deferred.map(|row| NANOS.text(row.median(Metric::DeferredCpuUs))).collect();
    page.value("deferred_ns", deferred.join(" and "));
    let footprint = [
        Column::contestant(),
        Column::median("allocated", Metric::AllocatedBytes, WHOLE),
        Column::median("resident", Metric::ResidentBytes, WHOLE),
        Column::median("key and outcome", Metric::PayloadBytes, WHOLE),
        Column::median("beyond them", Metric::OverheadBytes, WHOLE),
    ];
    page.table(FOOTPRINT, &footprint);
    let claims = [
        Column::contestant(),
        Column::median("p50 µs", Metric::P50Us, HUNDREDTHS),
        Column::median("p99 µs", Metric::P99Us, HUNDREDTHS),
        Column::times("p99 × half full", Metric::P99Us, |case| (case, case.contestant(HALF))),
    ];
    page.table(NEW_CLAIM, &claims);
    draw(page);
}

fn draw(page: &mut Page) {
    for (title, work) in [("Cycles (claim and complete)", CYCLES), ("Replays", REPLAYS)] {
        let rows = &page.rows;
        let bar = |row: &Row| {
            let times = |map| rows.times(row.case, row.case.contestant(map), Metric::PerSecond);
            let note = format!("{:.1}×, {:.1}× lean", times(MAP), times(LEAN));
            (count(row.case.load, "thread"), ChartBar::of(row, Metric::PerSecond, KILO, &note))
        };
        let panel = Panel::new(title, "thousands per second: more is better", rows.of(work), bar);
        page.panel(panel);
    }
    let bar = |row: &Row| ("1 record".to_owned(), ChartBar::of(row, Metric::OverheadBytes, WHOLE, ""));
    let axis = "bytes beyond key and outcome: less is better";
    page.panel(Panel::new("Memory of a settled record", axis, page.rows.of(FOOTPRINT), bar));
    let bar = |row: &Row| {
        let bar = ChartBar::of(row, Metric::P99Us, HUNDREDTHS, "");
        (row.case.contestant.to_owned(), ChartBar { name: ENGINE.to_owned(), ..bar })
    };
    let axis = "microseconds: less is better";
    page.panel(Panel::new("A new claim, p99", axis, page.rows.of(NEW_CLAIM), bar));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{rates, reached};

    #[test]
    fn every_bar_of_the_memory_store_is_judged_by_its_number() {
        let one = |work, contestant| Case::new(work, contestant).load(1);
        let mut rows = rates(&[
            (one(REPLAYS, ENGINE), &[1.0]),
            (one(REPLAYS, MAP), &[1.0]),
            (one(CYCLES, ENGINE), &[0.99]),
            (one(CYCLES, STORE), &[3.2]),
            (one(CYCLES, MAP), &[1.0]),
        ]);
        rows.add(Case::new(FOOTPRINT, STORE), footprint(420.0, 430.0, 173.0));
        for (state, p99) in [(HALF, 1.0), (REFUSED, 3.0), (FORGETS, 3.1)] {
            rows.add(Case::new(NEW_CLAIM, state), Sample::from([(Metric::P99Us, p99)]));
        }
        // One thread, then two, for which there is no number here: what was not measured is not reached.
        assert_eq!(reached(&bars(&rows)), [true, false, false, false, true, false, false, true, false]);
    }
}
