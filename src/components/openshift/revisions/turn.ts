import type { Turn } from './installer.ts';
import type { Operand } from './port.ts';

/** One component of a host at a time is restarted and judged. */
export function createTurn(onFree: () => void): Turn {
  let holder: Operand | undefined;
  return {
    take(operand) {
      holder ??= operand;
      return holder === operand;
    },
    release(operand) {
      if (holder !== operand) return;
      holder = undefined;
      onFree();
    },
  };
}
