let queue: Array<() => void> = [];

/**
 * Runs `run` once all sockets that were ready have been read, and what such a run asks for in its turn still in the
 * same pass: what is decided there leaves there, and not one turn of the event loop later. In the order asked.
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
    // An error of one callback must not prevent the others.
    queue = queue.slice(done);
    if (queue.length > 0) setImmediate(drain);
  }
}
