/** The record of an update of a host, as it is on disk. */

export interface SwitchRecord {
  /** Of the `WantedUpdate`. */
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly phase: 'trying' | 'rollingBack' | 'done' | 'failed';
  readonly message: string;
  /** How long the new executable may take to confirm, in milliseconds. */
  readonly timeoutMs: number;
}

/** Undefined: not such a record. */
export function parseSwitchRecord(text: string): SwitchRecord | undefined {
  let given: Partial<Record<keyof SwitchRecord, unknown>> | null;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { id, from, to, message, timeoutMs } = given ?? {};
  const phase = (['trying', 'rollingBack', 'done', 'failed'] as const).find((each) => each === given?.phase);
  const whole =
    typeof id === 'string' &&
    typeof from === 'string' &&
    typeof to === 'string' &&
    typeof message === 'string' &&
    typeof timeoutMs === 'number';
  return whole && phase !== undefined ? { id, from, to, phase, message, timeoutMs } : undefined;
}
