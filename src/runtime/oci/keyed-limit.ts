export interface KeyedLimit {
  /**
   * Runs `work` when fewer functions with this key are running than the limit allows. Waiting functions run in call
   * order.
   */
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

export function createKeyedLimit(limit: number): KeyedLimit {
  const keys = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  return {
    async run(key, work) {
      const state = keys.get(key) ?? { running: 0, waiting: [] };
      keys.set(key, state);
      if (state.running < limit) state.running += 1;
      // A slot is transferred directly to the next waiter, so the count stays the same.
      else await new Promise<void>((resolve) => state.waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = state.waiting.shift();
        if (next !== undefined) next();
        else {
          state.running -= 1;
          if (state.running === 0) keys.delete(key);
        }
      }
    },
  };
}
