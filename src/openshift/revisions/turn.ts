import type { Turn } from './installer.ts';
import type { Operand } from './port.ts';

/** Permits the restart and trial of one component of a host at a time. */
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
