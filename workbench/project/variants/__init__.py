"""Variants of a project on the same cases: did a change help?

A variant is a copy of the project with changes: a revision of git, another file, a variable, a model, or another
folder. This is how the command line and the screen use the package:

    wanted = Wanted(against="HEAD", models=("gemini-3.6-flash",))     # `variant`: what the user asks for
    trial = await asyncio.to_thread(open_trial, plan, wanted)         # `trial`: UsageFaultError if nothing differs
    try:
        trial.layout.names, trial.sources                             # what will run, as words
        trial.estimate(state, prices)                                 # what it may cost
        running = trial.run(project, publish, prices, max_cost=2.0)   # a `Running`: execute, stop, cancel
        await running.execute()
        found = report(trial.layout, records, trial.costs)            # `report`: at any time, also while it runs
        trial.stopped                                                 # the limit that ended it, or ""
        trial.executions(records, variant, case)                      # of one case; `read_details` has conversations
        trial.changed_files(variant)                                  # `FileChange`s, each with a unified diff
        trial.kept(variant)                                           # contents for `Saver.save`, which can be undone
    finally:
        await asyncio.to_thread(trial.close)                          # removes the copies and the conversations

`plan` is an ordinary plan of the cases in the working tree, each `options.runs` times. `records` are the executions of
a store that takes the events: `trial.store`, or another one in the screen's thread. `variant` is a position in
`layout.names`; the first one is what the others are compared with. `case` is one of `layout.cases`. Everything but
`run`, `executions` and `report` reads or writes files, so call it in a thread.

The executions of variants are no verdicts of the working tree. So they are not stored with the project's runs: they are
in a database in the temporary folder of the copies, and are gone with it. Only answers of judges are kept, as always.
"""
