"""Writes the recordings that ship with the project, the same bytes each time.

Recordings of real agents are not part of the project, so the tests that look at
recordings would have nothing to look at on a machine that has none. These two
sessions are made up, in the form of a real recording (`messages.jsonl` and
`meta.json`), and hold what such tests are about: prompts with a client's
reminders around them, files read twice, failures that work later, results side
by side, an output that is oversized, a summary of the client's own in the middle,
and a few hundred names that occur once.

Run without arguments from anywhere; commit what changes.
"""

import json
import pathlib
import random

HERE = pathlib.Path(__file__).parent
VERBS = """adjust align anchor append assign attach balance batch bind bridge bundle calibrate
capture clamp collapse collect compose compress convert couple decode defer derive detach digest
divide drain elect embed encode enqueue evict expand export extract fetch filter flatten flush
forward freeze gather graft group harvest hoist inflate inject insert invert isolate launch layer
limit locate merge migrate mirror narrow notify offset orbit pack partition patch permit pivot
plant polish prune publish quantize rebuild recycle redact refine relay render replay resolve
restore rotate sample scatter schedule sever shelter shuffle sketch slice smooth splice stagger
stitch subtract suspend swap tally taper throttle trace transplant unwind validate verify weave
widen wrap""".split()
NOUNS = """acorn almond apricot aspen bamboo banana barley basil beech birch blossom bramble
branch burdock cactus carrot cedar celery cherry chestnut citrus clover coconut currant cypress
daisy damson elder fennel fern fig flax garlic ginger gourd grape hazel heather hemlock hickory
holly hyssop iris ivy jasmine juniper kale kelp larch laurel lavender lemon lentil lichen lilac
linden lotus lupin mango maple medlar melon millet mint moss mulberry mustard myrtle nettle
nutmeg oak oat olive onion orchid papaya parsley peach pear pepper pine plum poplar poppy quince
radish raspberry rhubarb rosemary rye saffron sage sedge sorrel spinach spruce squash sumac
tamarind thistle thyme tulip turnip vanilla vetch walnut wheat willow yarrow yew""".split()
REMINDER = (
    "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n"
    "# orchardMd\nKeep functions short. Run the tests before each commit.\n</system-reminder>"
)


class Agent:
    """A session that is being written."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        names = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS]
        self.rng.shuffle(names)
        self.names = iter(names)
        self.messages = []
        self.calls = 0
        self.compacted = []

    def say(self, role, *blocks):
        self.messages.append({"role": role, "content": list(blocks)})

    def user(self, text, reminded=False):
        blocks = [{"type": "text", "text": REMINDER}] if reminded else []
        self.say("user", *blocks, {"type": "text", "text": text})

    def answer(self, text):
        self.say("assistant", self.thought(), {"type": "text", "text": text})

    def thought(self):
        about = self.rng.choice(NOUNS)
        text = f"The {about} part comes first, then I look at what depends on it."
        return {"type": "thinking", "thinking": text, "signature": "bWFkZSB1cA=="}

    def call(self, text, *calls):
        """Calls side by side: (tool, input, result, failed)."""
        said, results = [self.thought(), {"type": "text", "text": text}], []
        for tool, given, result, failed in calls:
            self.calls += 1
            name = f"toolu_made_{self.calls:04}"
            said.append({"type": "tool_use", "id": name, "name": tool, "input": given})
            result = {"type": "tool_result", "tool_use_id": name, "content": result}
            if failed:
                result["is_error"] = True
            results.append(result)
        self.say("assistant", *said)
        self.say("user", *results)

    def code(self, functions):
        """A file as a reading tool shows it; each function's name occurs once."""
        lines = []
        for _ in range(functions):
            noun, other = self.rng.sample(NOUNS, 2)
            lines += [
                f"/// Keeps the {noun} rows in step with the {other} ones.",
                f"pub fn {next(self.names)}({noun}: &[u8], limit: usize) -> Option<usize> {{",
                f"    let {other} = {noun}.iter().take(limit).position(|byte| *byte == {self.rng.randrange(256)})?;",
                f"    ({other} > {self.rng.randrange(1, 90)}).then_some({other})",
                "}",
                "",
            ]
        return "\n".join(f"{at:>6}\t{line}" for at, line in enumerate(lines, 1))

    def log(self, letters):
        """What a long test run prints."""
        lines, size = ["   Compiling orchard v0.3.1 (/home/user/orchard)"], 0
        while size < letters:
            noun, verb = self.rng.choice(NOUNS), self.rng.choice(VERBS)
            lines.append(f"test {noun}::tests::{verb}s_all_{len(lines)} ... ok")
            size += len(lines[-1]) + 1
        lines.append(f"test result: ok. {len(lines) - 1} passed; 0 failed; finished in 4.21s")
        return "\n".join(lines)

    def read(self, path, shown):
        return ("Read", {"file_path": f"/home/user/orchard/{path}"}, shown, False)

    def bash(self, command, shown, failed=False):
        return ("Bash", {"command": command}, shown, failed)

    def edit(self, path, old, new):
        given = {"file_path": f"/home/user/orchard/{path}", "old_string": old, "new_string": new}
        return ("Edit", given, f"The file /home/user/orchard/{path} has been updated.", False)

    def write(self, path, text):
        given = {"file_path": f"/home/user/orchard/{path}", "content": text}
        return ("Write", given, f"File created successfully at: /home/user/orchard/{path}", False)

    def files(self, folder, count, functions):
        """Looks through some files, one after the other."""
        for number in range(count):
            path = f"src/{folder}/{self.rng.choice(NOUNS)}_{number}.rs"
            self.call(f"I read {path} next.", self.read(path, self.code(functions)))

    def save(self, name):
        folder = HERE / name
        folder.mkdir(exist_ok=True)
        lines = "".join(json.dumps(m, ensure_ascii=False) + "\n" for m in self.messages)
        (folder / "messages.jsonl").write_text(lines)
        meta = {
            "name": name,
            "agent": "made up by tests/recordings/make.py",
            "messages": len(self.messages),
            "client_compaction_before_message_index": self.compacted,
        }
        (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")


def porting():
    """A coding agent ports a library: an oversized log, a compaction in the middle."""
    agent = Agent(18)
    agent.user(
        "Port the harvest scheduler from Python to Rust.\nNever touch files under legacy/.\n"
        "Use SQLite, not PostgreSQL, for the tests.",
        reminded=True,
    )
    shown = agent.code(14)
    agent.call("I look at what is there.", agent.read("src/scheduler/plan.rs", shown))
    agent.files("scheduler", 4, 12)
    failing = "error[E0433]: failed to resolve: use of undeclared crate or module `orchard_clock`"
    agent.call("Does it build?", agent.bash("cargo test --workspace", failing, failed=True))
    agent.call(
        "The clock is missing from the manifest.",
        agent.edit("Cargo.toml", "[dependencies]\n", "[dependencies]\norchard_clock = \"0.2\"\n"),
    )
    agent.call("Once more.", agent.bash("cargo test --workspace", agent.log(46_000)))
    agent.call("The same file again, whole.", agent.read("src/scheduler/plan.rs", shown))
    agent.call(
        "Both halves at once.",
        agent.read("src/scheduler/season.rs", agent.code(10)),
        agent.read("src/scheduler/weather.rs", agent.code(10)),
    )
    agent.call(
        "The new module.",
        agent.write("src/scheduler/frost.rs", "//! Frost dates.\npub const FIRST: u32 = 305;\n"),
    )
    agent.answer("The scheduler builds, and its tests pass. Frost dates are in src/scheduler/frost.rs.")
    agent.user("Good. We decided that dates stay in UTC. Now the irrigation planner, please.")
    agent.files("irrigation", 8, 11)
    agent.call("Where is it used?", agent.bash("grep -rn irrigation src", agent.code(6)))
    agent.answer("The planner reads three tables. I would merge two of them.")
    agent.user("Yes, merge them, but keep the old names as aliases.")
    agent.files("tables", 6, 9)
    agent.call("The tests again.", agent.bash("cargo test --workspace", agent.log(9_000)))
    agent.answer("Merged; the old names are aliases.")
    agent.compacted.append(len(agent.messages))
    agent.user(
        "This session is being continued from a previous conversation that ran out of context. "
        "The conversation is summarized below:\nThe user wants the harvest scheduler ported from "
        "Python to Rust without touching legacy/, with SQLite for the tests. src/scheduler/frost.rs "
        "was written, dates stay in UTC, and two tables were merged with the old names as aliases."
    )
    agent.answer("I go on with the documentation.")
    agent.user("First run everything once more, then write the notes for the release.")
    agent.call("Everything.", agent.bash("cargo test --workspace", agent.log(6_000)))
    agent.files("release", 7, 10)
    agent.call("The notes.", agent.write("NOTES.md", "# 0.4.0\n\nThe scheduler is in Rust now.\n"))
    agent.answer("The notes are in NOTES.md.")
    agent.save("made-up-port")


def service():
    """An agent without files answers customers: short results, many turns."""
    agent = Agent(19)
    for number in range(24):
        noun, other = agent.rng.sample(NOUNS, 2)
        agent.user(f"My order of {noun} seeds, number {7000 + number}, has not come. Where is it?")
        rows = [f"{next(agent.names)}: {agent.rng.choice(NOUNS)} shelf {row}" for row in range(12)]
        order = {"number": 7000 + number, "what": f"{noun} seeds", "notes": rows}
        agent.call(
            "I look the order up.",
            ("find_order", {"number": 7000 + number}, json.dumps(order), False),
            ("find_customer", {"order": 7000 + number}, f"A friend of {other} trees.", False),
        )
        agent.answer(f"Order {7000 + number} left our house yesterday and is on its way.")
    agent.save("made-up-service")


porting()
service()
