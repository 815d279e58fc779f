/** An operation on one register as its client observed it. `returned` is infinite if the outcome is unknown. */
export interface RegisterOperation {
  readonly kind: 'read' | 'write' | 'cas';
  readonly called: number;
  readonly returned: number;
  /** New value of a write or cas. */
  readonly value: number;
  /** Expected old value of a cas. */
  readonly expected: number;
  /** Previous value according to the response; undefined without a response. */
  readonly seen: number | undefined;
}

/** Value of the register after the operation if it is possible at `state`; otherwise undefined. */
function after(operation: RegisterOperation, state: number): number | undefined {
  if (operation.seen !== undefined && operation.seen !== state) return undefined;
  if (operation.kind === 'read') return state;
  return operation.kind === 'write' || state === operation.expected ? operation.value : state;
}

/**
 * Whether the operations on one register, initially 0, have a sequential order in which each takes effect between its
 * call and its return (Wing & Gong 1993, with Lowe's cache of visited states).
 */
export function isLinearizable(history: readonly RegisterOperation[]): boolean {
  // An operation without a response whose value was never observed can be ignored.
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
    // An operation must come before every operation that was called after it returned.
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
    // The remaining operations have no response, so they need not have taken effect.
    if (deadline === Number.POSITIVE_INFINITY) return true;
    const back = choices.pop();
    if (back === undefined) return false;
    done[back.at] = 0;
    state = back.state;
    low = back.low;
    candidate = back.at + 1;
  }
}
