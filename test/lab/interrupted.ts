interface Stoppable {
  stop(): Promise<void>;
}

const things = new Set<Stoppable>();

/** A test run that is interrupted, or ended for taking too long, takes its hosts away too: the last made first. */
export function stopWhenInterrupted(thing: Stoppable): void {
  if (things.size === 0)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stopAll());
  things.add(thing);
}

async function stopAll(): Promise<void> {
  for (const thing of [...things].reverse()) await thing.stop().catch(() => {});
  process.exit(1);
}
