let queue: Array<() => void> = [];

/**
 * Runs `run` after all readable sockets of this turn have been read. Callbacks that are added by callbacks run in the
 * same pass, so their output is not delayed by a turn of the event loop. The order of calls is kept.
 */
export function atTurnEnd(run: () => void): void {
  queue.push(run);
  if (queue.length === 1) setImmediate(drain);
}

function drain(): void {
  let done = 0;
  try {
    while (done < queue.length) {
      const run = queue[done] as () => void;
      done += 1;
      run();
    }
  } finally {
    // An error in one callback must not prevent the others.
    queue = queue.slice(done);
    if (queue.length > 0) setImmediate(drain);
  }
}
