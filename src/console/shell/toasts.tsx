/** Short messages about the outcome of actions. */
import { signal } from '@preact/signals';
import { sanitizeLines } from '../data/plain-text.ts';

const SHOWN_MS = 6_000;
const MAX_SHOWN = 5;

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'done' | 'failed';
}

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Shows a message. Failures stay visible until the user closes them. */
export function showToast(text: string, kind: Toast['kind'] = 'done'): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text, kind }].slice(-MAX_SHOWN);
  if (kind === 'done') setTimeout(() => close(id), SHOWN_MS);
}

/** Shows the message of an error. */
export const showFailure = (error: unknown): void =>
  showToast(error instanceof Error ? error.message : String(error), 'failed');

const close = (id: number): void => {
  toasts.value = toasts.value.filter((each) => each.id !== id);
};

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind }) => (
        <div key={id} class={`toast ${kind}`}>
          <span>{sanitizeLines(text)}</span>
          <button type="button" class="plain" aria-label="Close the message" onClick={() => close(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
