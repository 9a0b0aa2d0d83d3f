//! Writes the seeds: a few inputs of each target for a fuzzer to begin with. `cargo run -p fuzz-targets --example seeds`
//!
//! Where there are recordings or examples of the real thing, they are taken from those: frames that servers sent, events of a real
//! connector, pipeline files, scenarios. The rest is written here, by the formats' descriptions, or made by a fixed generator.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz_targets::mutate::Random;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_path_buf()
}

fn main() {
    let all = [
        ("position", positions()),
        ("state", states()),
        ("key", keys()),
        ("machine", machines()),
        ("lines", lines()),
        ("pipeline", pipelines()),
        ("frames", frames()),
        ("copied", copied()),
        ("values", values()),
        ("scenario", scenarios()),
    ];
    for (target, seeds) in all {
        let folder = top().join("fuzz/seeds").join(target);
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("the old ones go");
        }
        fs::create_dir_all(&folder).expect("a folder");
        for (name, seed) in seeds {
            fs::write(folder.join(name), seed).expect("a seed is written");
        }
    }
}

type Seeds = Vec<(String, Vec<u8>)>;

fn numbered<T: AsRef<[u8]>>(seeds: impl IntoIterator<Item = T>) -> Seeds {
    seeds.into_iter().enumerate().map(|(n, seed)| (format!("{n:02}"), seed.as_ref().to_vec())).collect()
}

/// Bytes of a fixed generator: where any bytes mean something.
fn random(many: usize, most: usize, seed: u64) -> Seeds {
    let mut random = Random::new(seed);
    let mut one = || {
        let length = most / 4 + random.below(3 * most / 4);
        (0..length).map(|_| random.number() as u8).collect::<Vec<u8>>()
    };
    numbered((0..many).map(|_| one()))
}

/// Long ones, behind whose values something is left that is no key, and short ones.
fn keys() -> Seeds {
    numbered(random(16, 120, 1).into_iter().chain(random(8, 20, 2)).map(|(_, seed)| seed))
}

fn positions() -> Seeds {
    numbered([
        "\n42\n7",
        "a:5,b:3\na:3,b:10\na:4",
        "18446744073709551615\n18446744073709551614",
        "a%25%2C%3A%20b:5\n:5\n5",
        "a:0\nb:5,a:5\n007",
        "a:5,a:6\na:\n:",
        "5,a:1\na:1\n5",
        "x:1,y:2,z:3\nx:2,y:1,z:3\nx:1,y:1,z:4\ny:9",
        "a%2:5\na%2c:5\n-1",
        "a:5+7..9+12..13\na:7..9\na:6..13",
        "7..9\n5+7..9\n5",
        "\u{fc}:5\n\u{1f980}:7,\u{fc}:4",
    ])
}

/// By the stored form, as kernel/tests/stored.rs has it.
fn state(commit: &str, more: &str) -> String {
    format!(
        r#"{{"format":1,"cut":{{"upto":"70"}},"identity":{{"streams":{{"":"this"}},"coordinates":null}},"incarnation":2,"commit":{commit},"ancestors":[{{"incarnation":1,"first":1,"last":2}},{{"incarnation":2,"first":1,"last":1}}],"sequence":9,"generation":0,"base":"","begun":0{more}}}"#
    )
}

fn record(generation: &str, named: &str, phase: &str) -> String {
    format!(
        r#"{{"format":1,"incarnation":3,"identity":{{"streams":{{"":"this"}},"coordinates":null}},"quiet":"70","tables":{{"shop.orders":{{"phase":"{phase}","generation":{generation},"named":{named}}}}}}}"#
    )
}

fn states() -> Seeds {
    let usual = state(r#"{"incarnation":2,"number":2}"#, "");
    let last = state(r#"{"incarnation":2,"number":18446744073709551615}"#, "");
    let snapshot = state(
        r#"{"incarnation":2,"number":2}"#,
        r#","tiling":[{"end":"5","durable":true},{"end":null,"durable":false}],"in_doubt":["7"],"ahead":"80","schema":"{}""#,
    );
    let complete = state(r#"{"incarnation":1,"number":1}"#, r#","tiling":[{"end":null,"durable":true}]"#);
    let divided = usual.replace(
        r#"{"upto":"70"}"#,
        r#"{"upto":"70","within":[{"stream":"","at":70,"last":{"major":90,"minor":1},"digest":{"count":3,"hash":17}}]}"#,
    );
    let run = usual.replace(r#""first":1,"last":2"#, r#""first":1,"last":18446744073709551615"#);
    let streaming = record("0", r#"{"incarnation":2,"number":2}"#, "streaming");
    let needed = record("18446744073709551615", "null", "needs-snapshot");
    let halted = record("1", "null", "halted");
    let of_sets = usual
        .replace(r#"{"upto":"70"}"#, r#"{"upto":"a:5+7..9"}"#)
        .replace(r#""streams":{"":"this"}"#, r#""streams":{},"lineage":"group""#);
    let newer = usual.replace(r#""format":1"#, r#""format":2"#);
    numbered([
        usual.clone(),
        format!("{usual}\n{streaming}"),
        last,
        format!("{snapshot}\n{halted}"),
        complete,
        divided,
        run,
        needed,
        newer,
        of_sets,
        r#"{"format":1}"#.to_owned(),
        "not JSON".to_owned(),
        String::new(),
    ])
}

/// A quiet world and wild ones. After the bytes of the configuration small bytes let a command land, 180 to 211 let the log grow.
fn machines() -> Seeds {
    let mut random = Random::new(3);
    let mut seeds = Vec::new();
    for n in 0..24 {
        let mut bytes = vec![if n % 4 == 3 { 255 } else { 0 }];
        bytes.extend((0..39).map(|_| if n == 0 { 0 } else { random.number() as u8 }));
        for _ in 0..200 + 30 * n {
            bytes.push(match random.below(10) {
                0 => 180 + random.below(32) as u8,
                1 if n > 2 => random.number() as u8,
                2 => 160,
                _ => random.below(120) as u8,
            });
            // What follows an answer is its fate and what it brings: mostly a good one.
            bytes.push(if random.below(12) == 0 { random.number() as u8 } else { random.below(200) as u8 });
        }
        seeds.push(bytes);
    }
    numbered(seeds)
}

/// Events of a real connector, and lines by hand.
fn lines() -> Seeds {
    let mut seeds = Vec::new();
    for form in ["default", "schemas", "micros", "strings", "connect", "unwrapped"] {
        let folder = top().join("drivers/jsonl/testdata/debezium").join(form);
        let mut files: Vec<PathBuf> =
            fs::read_dir(&folder).expect("a folder of events").map(|e| e.expect("a file").path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "jsonl")).take(3) {
            let text = fs::read_to_string(file).expect("events are text");
            let few: String = text.split_inclusive('\n').take(3).collect();
            if few.len() <= 8_000 {
                seeds.push(few);
            }
        }
    }
    let row = |row: &str| {
        let source = r#"{"connector":"postgresql","schema":"","db":"","table":"t","txId":7,"ts_ms":5}"#;
        format!(r#"{{"op":"c","source":{source},"before":null,"after":{row}}}"#)
    };
    seeds.push(
        [
            row(r#"{"c0":1,"c1":true,"c2":-7,"c3":18446744073709551615,"c4":1e300,"c5":"12.30","c6":"0.0000000001","c7":"x"}"#),
            row(r#"{"c0":2,"c8":{"a":[1]},"c9":"aGk=","c10":"0190163d-8694-739b-aea5-966c26f8ad91","c11":19000,"c12":"12:30:00.5"}"#),
            row(r#"{"c0":3,"c13":1700000000000,"c14":"2024-05-06T07:08:09.123456Z","c15":[1,2],"c16":{"k":5},"c17":{"a":1,"b":["x"]}}"#),
            row(r#"{"c0":4,"c5":"MDk=","c7":"\ud83e\udd80","c11":"2024-02-29","c12":86399999999,"c13":"2024-05-06 07:08:09"}"#),
        ]
        .join("\n"),
    );
    let event = row(r#"{"c0":5}"#);
    seeds.push(serde_json::json!({"topic": "t", "key": "{\"c0\":5}", "value": event}).to_string());
    for line in [
        "null",
        "",
        "{\"op\":\"c\"",
        "[[[[[[[[]]]]]]]]",
        "{\"op\":\"x\",\"source\":{}}",
        "{\"a\":01}",
        "\"\\ud800\"",
        "{\"op\":\"t\",\"source\":{\"table\":\"t\"}}",
    ] {
        seeds.push(line.to_owned());
    }
    numbered(seeds)
}

fn pipelines() -> Seeds {
    let testdata = top().join("drivers/spec/testdata");
    let good =
        ["design", "anchors", "compat-go", "everything-built", "outside", "minimal"].map(|name| format!("good/{name}.yaml"));
    let bad = ["aliases-without-end", "bad-filter", "yaml-tab", "too-deep", "not-utf8", "wrong-type"]
        .map(|name| format!("bad/{name}.yaml"));
    let mut seeds: Vec<Vec<u8>> =
        good.iter().chain(&bad).map(|file| fs::read(testdata.join(file)).expect("a pipeline file")).collect();
    seeds.retain(|seed| seed.len() <= 8_000);
    for small in [
        "1h30m\n10s\n500ms\n0s",
        "64MiB\n1.5GB\n0\n7kB",
        "decimal(12,2)\nlist(string)\nstruct(a int32, b map(string, json) not null)\nbinary(16)",
        "struct(\"a b\" int64)\n5m-3s\n1e9MB\n",
        "pipeline: p\nsource: { kind: jsonl, path: \"${env:HOST}-${file:/run/password}\" }\nsink: { kind: 'null' }\ntables: [{ source: a.b }]\n",
    ] {
        seeds.push(small.as_bytes().to_vec());
    }
    numbered(seeds)
}

/// What servers sent, a transaction or two at once.
fn frames() -> Seeds {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for release in ["15", "18"] {
        let file = top().join(format!("drivers/postgres/src/pgoutput/corpus/{release}.txt"));
        let recorded = fs::read_to_string(file).expect("recorded frames");
        let mut seed = Vec::new();
        for line in recorded.lines().filter(|line| !line.starts_with('#')) {
            let Some((at, message)) = line.split_once(' ') else { continue };
            let message = unhex(message);
            let (high, low) = at.split_once('/').expect("an LSN");
            let number = |part| u64::from_str_radix(part, 16).expect("an LSN");
            let at = number(high) << 32 | number(low);
            push_frame(&mut seed, &[&[b'w'][..], &at.to_be_bytes(), &[0; 16], &message].concat());
            if message.first() == Some(&b'C') && seed.len() > 1_500 {
                seeds.push(std::mem::take(&mut seed));
            }
        }
        seeds.push(seed);
    }
    seeds.truncate(20);
    let mut keepalive = Vec::new();
    push_frame(&mut keepalive, &[&[b'k'][..], &7_u64.to_be_bytes(), &[0; 8], &[1]].concat());
    seeds.push(keepalive);
    seeds.push(b"\0\x04nope".to_vec());
    numbered(seeds)
}

fn push_frame(seed: &mut Vec<u8>, frame: &[u8]) {
    seed.extend_from_slice(&(frame.len() as u16).to_be_bytes());
    seed.extend_from_slice(frame);
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.trim().chars().collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hexadecimal")).collect()
}

/// By the manual's description of COPY's binary form.
fn copied() -> Seeds {
    let header = [&b"PGCOPY\n\xFF\r\n\0"[..], &[0; 8]].concat();
    let row = b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff";
    let end = b"\xff\xff";
    let extended = [&header[..header.len() - 1], &[3], b"ext"].concat();
    numbered([
        [&[0][..], &header, row, row, end].concat(),
        [&[6][..], &extended, row, b"\0\0", end].concat(),
        [&[63][..], &header, row].concat(),
        [&[1][..], &header, b"\0\x01\x7f\xff\xff\xff"].concat(),
        [&[2][..], &header, b"\0\x01\xff\xff\xff\xfe"].concat(),
        [&[3][..], &header, b"\xff\xfe"].concat(),
        [&[4][..], &header, end, row].concat(),
        b"\0nothing of it".to_vec(),
    ])
}

/// Each of the server's types with values of every usual length.
fn values() -> Seeds {
    let numeric = |digits: &[u16], weight: i16, sign: u16, scale: u16| {
        let head = [digits.len() as u16, weight as u16, sign, scale];
        head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
    };
    let list = |values: &[&[u8]]| {
        let head = [1_u32, 0, 23, values.len() as u32, 1];
        let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
        for value in values {
            bytes.extend_from_slice(&(value.len() as u32).to_be_bytes());
            bytes.extend_from_slice(value);
        }
        bytes
    };
    let bodies: Vec<Vec<u8>> = vec![
        vec![1],
        vec![0, 7],
        vec![0, 0, 0, 7],
        vec![0, 0, 0, 0, 0, 0, 0, 7],
        numeric(&[12, 3_000], 0, 0, 2),
        numeric(&[1, 5, 12], 1, 0x4000, 4),
        numeric(&[], 0, 0xC000, 0),
        b"some text".to_vec(),
        vec![1, b'{', b'}'],
        (0..16).collect(),
        vec![2, 32, 0, 4, 127, 0, 0, 1],
        vec![0, 0, 0, 5, 0b1011_0000],
        list(&[&[0, 0, 0, 5], &[0, 0, 0, 6]]),
        vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23],
    ];
    let seed = |(n, of): (usize, u8)| {
        let (first, second) = (&bodies[n % bodies.len()], &bodies[(n * 5 + 1) % bodies.len()]);
        let first = &first[..first.len().min(40)];
        [&[of, 0, first.len() as u8][..], first, second].concat()
    };
    // Arrays come behind the plain types, in the same order.
    let fitting: [(u8, usize); 14] = [
        (1, 0),
        (2, 1),
        (0, 2),
        (3, 3),
        (8, 4),
        (9, 5),
        (8, 6),
        (13, 7),
        (17, 8),
        (19, 9),
        (26, 10),
        (28, 11),
        (31, 12),
        (31, 13),
    ];
    let fitting = fitting.map(|(of, body)| {
        let body = &bodies[body][..bodies[body].len().min(40)];
        [&[of, 0, body.len() as u8][..], body, body].concat()
    });
    numbered(fitting.into_iter().chain((0_u8..62).step_by(3).enumerate().map(seed)))
}

fn scenarios() -> Seeds {
    let folder = top().join("fault-scenarios/scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).expect("scenarios").map(|e| e.expect("a file").path()).collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files.iter().step_by(8).map(|file| fs::read(file).expect("a scenario")).collect();
    seeds.push(b"tx 1\n".to_vec());
    seeds.push(b"table t0 staging\ntx 18446744073709551615\n  t0 1..3 = 100..102\n".to_vec());
    numbered(seeds)
}
