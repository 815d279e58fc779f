/** An operation on one register as its client saw it. `returned` is infinite if the client never learned what became of it. */
export interface RegisterOperation {
  readonly kind: 'read' | 'write' | 'cas';
  readonly called: number;
  readonly returned: number;
  /** Write, cas: the new value. */
  readonly value: number;
  /** Cas: the value it replaces. */
  readonly expected: number;
  /** The value before the operation, as it was answered; undefined if it was not. */
  readonly seen: number | undefined;
}

/** The register after the operation if it may take place at `state`; undefined if it may not. */
function after(operation: RegisterOperation, state: number): number | undefined {
  if (operation.seen !== undefined && operation.seen !== state) return undefined;
  if (operation.kind === 'read') return state;
  return operation.kind === 'write' || state === operation.expected ? operation.value : state;
}

/**
 * Whether the operations on one register, which starts at 0, can have happened one after another, each at an instant between its call and its return
 * (Wing & Gong 1993, with Lowe's memory of what has been tried).
 */
export function isLinearizable(history: readonly RegisterOperation[]): boolean {
  // An unanswered operation whose value nobody saw, or can have replaced unseen, may as well not have happened.
  const observed = new Set(history.map((operation) => operation.seen));
  for (const operation of history) if (operation.kind === 'cas') observed.add(operation.expected);
  const operations = history
    .filter((operation) => operation.returned !== Number.POSITIVE_INFINITY || observed.has(operation.value))
    .sort((a, b) => a.called - b.called);
  const count = operations.length;
  const done = new Uint8Array(count);
  const tried = new Set<string>();
  const choices: { readonly at: number; readonly state: number; readonly low: number }[] = [];
  let state = 0;
  let low = 0;
  let candidate = 0;
  for (;;) {
    while (low < count && done[low] === 1) low++;
    if (low === count) return true;
    // Nothing may come before an operation that returned before it was called.
    let deadline = Number.POSITIVE_INFINITY;
    let high = low;
    for (; high < count; high++) {
      const operation = operations[high] as RegisterOperation;
      if (operation.called > deadline) break;
      if (done[high] === 0) deadline = Math.min(deadline, operation.returned);
    }
    let moved = false;
    for (let at = Math.max(candidate, low); at < high; at++) {
      if (done[at] === 1 || (operations[at] as RegisterOperation).called > deadline) continue;
      const next = after(operations[at] as RegisterOperation, state);
      if (next === undefined) continue;
      done[at] = 1;
      const key = `${low}:${done.subarray(low, high).join('')}:${next}`;
      if (tried.has(key)) {
        done[at] = 0;
        continue;
      }
      tried.add(key);
      choices.push({ at, state, low });
      state = next;
      candidate = 0;
      moved = true;
      break;
    }
    if (moved) continue;
    // What is left are operations without an answer: they need not have happened.
    if (deadline === Number.POSITIVE_INFINITY) return true;
    const back = choices.pop();
    if (back === undefined) return false;
    done[back.at] = 0;
    state = back.state;
    low = back.low;
    candidate = back.at + 1;
  }
}
