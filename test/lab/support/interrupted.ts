interface Stoppable {
  stop(): Promise<void>;
}

const things = new Set<Stoppable>();

/** Stops the hosts of a test run that is interrupted or times out, in reverse order of their creation. */
export function stopWhenInterrupted(thing: Stoppable): void {
  if (things.size === 0)
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stopAll());
  things.add(thing);
}

async function stopAll(): Promise<void> {
  for (const thing of [...things].reverse()) await thing.stop().catch(() => {});
  process.exit(1);
}
