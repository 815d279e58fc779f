/** A finding of the attack on the packaged executable, as a case that every build must pass. */
import type { AttackLab } from './lab.ts';

export interface AttackCase {
  /** The finding's number in docs/security.md; cases run in this order. */
  readonly finding: number;
  readonly title: string;
  /** Alone on the appliance: it kills its components, fills its disk or needs its whole processor. */
  readonly exclusive?: boolean;
  readonly timeoutMs?: number;
  /** Performs the attack and asserts that it fails. Cleans up what it made on the shared appliance. */
  readonly attack: (lab: AttackLab) => Promise<void>;
}
