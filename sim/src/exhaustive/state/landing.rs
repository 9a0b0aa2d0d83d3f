//! Commands land, answers arrive, processes go on.

use super::*;

impl State {
    /// A command lands, and is judged.
    pub(super) fn land(&mut self, life: usize, at: usize, whole: bool) -> Judged {
        let Pending { command, step } = self.lives[life].pending.remove(at);
        let hears = matches!(step, Step::Sent) && self.lives[life].process.is_some();
        let fact = |input: Input| Some(Answer::Fact(Box::new(input)));
        let (answer, at_once) = match &command {
            Command::Write { attempt, table, netted } => {
                match &mut self.world.targets[*table] {
                    Target::Staging(target) => drop(target.staged.insert(*attempt, netted.clone())),
                    Target::Versioned(target) => target.write(*attempt, netted),
                }
                if hears {
                    self.tell_worker(life, WorkerInput::Wrote { attempt: *attempt, outcome: WriteOutcome::Written })?;
                }
                (None, true)
            }
            Command::Coordinator(output) => match output {
                Output::Commit { id, table, token, state, staged, truncate_first, sweep } => {
                    let (state, staged) = ((**state).clone(), staged.clone());
                    let (truncate_first, sweep) = (*truncate_first, *sweep);
                    let commit = Commit { token: token.clone(), state, staged, truncate_first, sweep };
                    let awaited = usize::from(matches!(step, Step::Sent));
                    let outcome = self.commit(life, self.world.table(table), &commit, awaited)?;
                    (fact(Input::Committed { id: *id, table: table.clone(), outcome }), false)
                }
                Output::StorePipelineState { id, expected, new } => {
                    let before = self.world.clone();
                    let outcome = self.world.store_record(expected, new);
                    if matches!(outcome, StoreOutcome::Stored { .. }) {
                        judge::record(&before, &self.world)?;
                    }
                    (fact(Input::PipelineStateStored { id: *id, outcome }), false)
                }
                Output::ReadPipelineState { id } => {
                    let state = self.world.record.clone().map(Box::new);
                    (fact(Input::PipelineStateRead { id: *id, state, token: self.world.record_token() }), true)
                }
                Output::RecoverTable { id, table } => {
                    let target = &self.world.targets[self.world.table(table)];
                    let (state, token) = (target.state().cloned().map(Box::new), target.token());
                    (fact(Input::TableRecovered { id: *id, table: table.clone(), state, token }), true)
                }
                Output::Resolve { id, table, commit, incarnation } => match &self.world.targets[self.world.table(table)] {
                    Target::Staging(target) => {
                        let (found, token) = (target.resolve(*commit, *incarnation), target.token());
                        (fact(Input::Resolved { id: *id, table: table.clone(), found, token }), true)
                    }
                    Target::Versioned(_) => (fact(Input::Failed { id: *id, why: "nothing is kept".into() }), true),
                },
                Output::OpenLog { id } => {
                    let session = self.world.open();
                    let (identity, floor, end) = (self.world.identity(), self.world.floor.clone(), self.world.end());
                    (fact(Input::LogOpened { id: *id, session, identity, floor, end }), true)
                }
                Output::ReadLog { id, session, restart, keys_of, .. } => {
                    let later = &self.lives[life].pending[at..];
                    let reads = |p: &Pending| matches!(&p.command, Command::Coordinator(Output::ReadLog { .. }));
                    let newest = self.world.record.as_ref().is_some_and(|r| r.incarnation == id.incarnation);
                    let void = !newest || later.iter().any(reads);
                    let Some(said) = self.world.read(*session, restart.as_ref(), whole) else {
                        // A life that has gone on behind it waits for it no more; a newer one may have let it go.
                        let failure = LogFailure::PositionLost { why: "the log has forgotten it".into() };
                        return match void {
                            true => self.answer(life, Answer::Fact(Box::new(Input::LogFailed { id: *id, failure }))),
                            false => broken("start-within-streamable", "a life reads what the log has forgotten".into()),
                        };
                    };
                    let keys_of = keys_of.iter().map(|name| self.world.table(name)).collect();
                    let small = self.world.small.clone();
                    let Some(process) = self.lives[life].process() else { return Ok(()) };
                    (fact(process.take_in(&small.history, true, *id, (said, false), &keys_of)), true)
                }
                Output::PlanRanges { id, .. } => {
                    let bounds = self.world.small.bounds.iter().map(|key| bound(*key)).collect();
                    (fact(Input::RangesPlanned { id: *id, bounds }), true)
                }
                Output::ReadVisibility { id, about, unfinished, .. } => {
                    let visibility = self.world.sees(about, *unfinished);
                    (fact(Input::VisibilityRead { id: *id, visibility }), false)
                }
                Output::ReadChunk { id, table, range, rows_max, about, .. } => {
                    let Chunk { rows, end, visibility, at_least, schema, identity } =
                        self.world.chunk(self.world.table(table), range, *rows_max, about);
                    // The rest of the answer, without rows; they go to the row store when it arrives.
                    let rest = Chunk { rows: vec![], end: end.clone(), visibility, at_least: at_least.clone(), schema, identity };
                    let Some(process) = self.lives[life].process() else { return Ok(()) };
                    let seen = Box::new(process.take_chunk(*id, rest, at_least));
                    (Some(Answer::Chunk { id: *id, rows, end, seen }), false)
                }
                Output::Acknowledge { upto, .. } => {
                    judge::acknowledgement(&self.world, upto)?;
                    self.world.floor.join_with(upto);
                    (None, true)
                }
                Output::ReleaseStaged { table, attempt, delete } => {
                    let tab = self.world.table(table);
                    if let (Target::Staging(target), true) = (&mut self.world.targets[tab], *delete) {
                        let deleted = target.delete(*attempt);
                        judge("staged-kept-while-unknown", outcomes::dropped_was_never_visible(*attempt, !deleted))?;
                    }
                    (None, true)
                }
                Output::DiscardOlder { table, incarnation } => {
                    let tab = self.world.table(table);
                    if let Target::Staging(target) = &mut self.world.targets[tab] {
                        target.discard_older(*incarnation);
                    }
                    (None, true)
                }
                _ => (None, true),
            },
        };
        match answer {
            Some(answer) if hears && at_once => self.answer(life, answer),
            Some(answer) if hears => {
                self.lives[life].pending.push(Pending { command, step: Step::Landed(answer) });
                Ok(())
            }
            _ => self.land_what_nobody_answers(life),
        }
    }

    /// `awaited`: so many of the commits that are not answered yet are this one.
    fn commit(&mut self, life: usize, table: usize, commit: &Commit, awaited: usize) -> Result<CommitOutcome, Violation> {
        let before = self.world.clone();
        let running = |p: &&Pending| {
            let of = |t: &TableName| self.world.table(t) == table;
            let commits = matches!(&p.command, Command::Coordinator(Output::Commit { table, .. }) if of(table));
            commits && !matches!(p.step, Step::SaidUnknown)
        };
        let running = awaited + self.lives[life].pending.iter().filter(running).count();
        let (outcome, landed) = match &mut self.world.targets[table] {
            Target::Staging(target) => target.commit(commit),
            Target::Versioned(target) => {
                let shown = target.commit(commit);
                (CommitOutcome::Durable { token: Token::from("") }, if shown { Landed::Shown } else { Landed::Again })
            }
        };
        judge::landed(&landed)?;
        if matches!(landed, Landed::Shown) {
            judge::commit(&before, &self.world, table, commit, running)?;
        }
        Ok(outcome)
    }

    pub(super) fn answer_unknown(&mut self, life: usize, command: &Command) -> Judged {
        match unknown(command) {
            Some(fact) => self.give(life, fact),
            None => Ok(()),
        }
    }

    pub(super) fn answer(&mut self, life: usize, answer: Answer) -> Judged {
        let fact = match answer {
            Answer::Fact(fact) => *fact,
            Answer::Chunk { id, rows, end, seen } => {
                let (Input::ChunkRead { chunk, .. }, Some(process)) = (*seen, self.lives[life].process()) else {
                    return Ok(());
                };
                let (visibility, at_least, identity) = (chunk.visibility, chunk.fence.clone(), chunk.identity);
                let chunk = Chunk { rows, end, visibility, at_least: at_least.clone(), schema: 0, identity };
                process.take_chunk(id, chunk, at_least)
            }
        };
        self.give(life, fact)
    }

    fn give(&mut self, life: usize, fact: Input) -> Judged {
        self.hear(|| Some(format!("  life {life} {}", tell::input(&fact)?)));
        let Some(process) = self.lives[life].process() else { return Ok(()) };
        process.tell(0, fact);
        if let Err(violation) = process.coordinator.check() {
            return broken(violation.rule, violation.dump);
        }
        self.drain(life)
    }

    pub(super) fn drain(&mut self, life: usize) -> Judged {
        loop {
            let Some(process) = self.lives[life].process() else { return Ok(()) };
            match process.coordinator.poll_output() {
                Some(output) => self.says(life, output)?,
                None if process.coordinator.poll_timeout().is_some_and(|d| d.at <= Time(0)) => {
                    process.tell(0, Input::Timeout);
                    let Some(output) = process.coordinator.poll_output() else {
                        let why = process.coordinator.poll_timeout().map(|d| d.why);
                        return broken("every-wait-has-an-exit", format!("{why:?} is due, and nothing comes of it"));
                    };
                    self.says(life, output)?;
                }
                None => break,
            }
        }
        let Some(process) = &self.lives[life].process else { return Ok(()) };
        let known = process.coordinator.batches().into_iter().collect();
        let (bytes, held) = process.held();
        judge("rows-held-equal-rows-known", resources::rows_held_equal_rows_known(&held, &known))?;
        if bytes != process.coordinator.bytes_held() {
            return broken("budget-conserved", format!("{bytes} bytes are held, {} counted", process.coordinator.bytes_held()));
        }
        self.land_what_nobody_answers(life)
    }

    /// What has no answer and only deletes lands as soon as its lane is free: a life that dies just before lets it lie.
    pub(super) fn land_what_nobody_answers(&mut self, life: usize) -> Judged {
        if self.lives[life].process.is_none() {
            return Ok(());
        }
        let deletes =
            |p: &Pending| matches!(&p.command, Command::Coordinator(Output::ReleaseStaged { .. } | Output::DiscardOlder { .. }));
        let l = &self.lives[life];
        match (0..l.pending.len()).find(|at| deletes(&l.pending[*at]) && self.may_land(l, *at)) {
            Some(at) => self.land(life, at, false),
            None => Ok(()),
        }
    }

    fn says(&mut self, life: usize, output: Output) -> Judged {
        self.hear(|| Some(format!("  life {life} {}", tell::output(&output)?)));
        let Some(process) = self.lives[life].process() else { return Ok(()) };
        match output {
            Output::ReleaseBatch { batch } => judge("rows-held-equal-rows-known", process.release(batch)),
            Output::Send(message) => {
                judge("rows-held-equal-rows-known", process.pin(&message))?;
                self.tell_worker(life, WorkerInput::Told(message))
            }
            Output::Started { table, state, floor, lost } => {
                let table = self.world.table(&table);
                judge::start(&self.world, table, state.as_deref(), &floor, lost)
            }
            Output::HaltTable { table, why, .. } => broken("start-within-streamable", format!("{table} halts: {why}")),
            Output::Skipped { .. } => Ok(()),
            Output::Stop { reason } => self.end(life, &reason),
            output => {
                self.lives[life].pending.push(Pending { command: Command::Coordinator(output), step: Step::Sent });
                Ok(())
            }
        }
    }

    /// A life ends by itself: only because a newer one has begun.
    fn end(&mut self, life: usize, reason: &StopReason) -> Judged {
        let ours = self.lives[life].process.as_ref().map(|p| p.coordinator.incarnation());
        self.die(life);
        match reason {
            StopReason::Superseded { .. } if self.world.record.as_ref().map(|r| r.incarnation) > ours => Ok(()),
            StopReason::Violation { rule, dump } => broken(rule, dump.clone()),
            other => broken("superseded-means-stopped", format!("it ends: {other:?}")),
        }
    }

    /// A worker nets and answers at once: its rows are in its own process.
    fn tell_worker(&mut self, life: usize, input: WorkerInput) -> Judged {
        let Some(process) = self.lives[life].process() else { return Ok(()) };
        let outputs = process.tell_worker(input);
        if let Err(violation) = process.worker.check() {
            return broken(violation.rule, violation.dump);
        }
        for output in outputs {
            let Some(process) = self.lives[life].process() else { return Ok(()) };
            match output {
                WorkerOutput::Net { attempt, part, first_version, .. } => {
                    let table = self.world.table(&part.table);
                    let keyed = self.world.small.tables[table].keyed;
                    match process.net(attempt, table, first_version, keyed, false) {
                        Ok(netted) => self.tell_worker(life, netted)?,
                        Err(keys) => return broken("absent-value-never-stored", format!("{table}: {keys:?} lack values")),
                    }
                }
                WorkerOutput::Write { attempt, .. } => self.write(life, attempt),
                WorkerOutput::Forget { attempt } => process.forget(attempt),
                WorkerOutput::Written { attempt, outcome } => self.give(life, Input::Written { attempt, outcome })?,
            }
        }
        Ok(())
    }

    fn write(&mut self, life: usize, attempt: AttemptId) {
        let netted = self.lives[life].process.as_ref().and_then(|p| p.netted(attempt));
        if let Some((table, netted)) = netted {
            let command = Command::Write { attempt, table, netted };
            self.lives[life].pending.push(Pending { command, step: Step::Sent });
        }
    }
}
