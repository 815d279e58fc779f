/** Small parts that many pages use. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { KubeObject } from '../../api/meta/object.ts';
import type { AccessRequest } from '../data/api/access.ts';
import { conditionsOf } from '../data/api/resources.ts';
import { ageText } from '../data/format.ts';
import { sanitizeLines } from '../data/plain-text.ts';
import type { Finding } from '../data/pods/explain.ts';
import { hrefOf } from '../shell/router.ts';
import { showFailure, showToast } from '../shell/toasts.tsx';
import { useAccess } from './hooks.ts';
import { ShortTable } from './short-table.tsx';

export const Link = ({ to, children }: { readonly to: string; readonly children: ComponentChildren }) => (
  <a href={hrefOf(to)}>{children}</a>
);

export const pathOf = (...segments: readonly string[]): string => `/${segments.map(encodeURIComponent).join('/')}`;

export type Level = 'good' | 'warn' | 'bad' | 'muted';

const SYMBOLS: Readonly<Record<Level, string>> = { good: '●', warn: '▲', bad: '■', muted: '○' };

/** Shows a state with a symbol and a word, so that colour is not the only indication. */
export const State = ({ level, text }: { readonly level: Level; readonly text: string }) => (
  <span class={level}>
    <span aria-hidden="true">{SYMBOLS[level]}</span>
    {`\u00a0${sanitizeLines(text)}`}
  </span>
);

export interface ActionProps {
  readonly label: string;
  readonly question: AccessRequest;
  readonly run: () => Promise<unknown> | unknown;
  /** Message after success. */
  readonly done?: string;
  /** Text of a confirmation that the user must accept first. */
  readonly confirm?: string;
  readonly disabled?: string;
  /** Whether Enter in a field of the form runs the action. */
  readonly isDefault?: boolean;
}

/** Button of an action. If the user may not perform the action, the button is disabled and shows the reason. */
export function Action({ label, question, run, done, confirm, disabled, isDefault = false }: ActionProps) {
  const decision = useAccess(question);
  const [isBusy, setBusy] = useState(false);
  const [isConfirming, setConfirming] = useState(false);
  const reason = decision.allowed ? disabled : decision.reason;
  const start = async (): Promise<void> => {
    setConfirming(false);
    setBusy(true);
    try {
      await run();
      if (done !== undefined) showToast(done);
    } catch (error) {
      showFailure(error);
    } finally {
      setBusy(false);
    }
  };
  const onClick = (): void => {
    if (reason !== undefined) showToast(reason, 'failed');
    else if (confirm !== undefined) setConfirming(true);
    else void start();
  };
  return (
    <>
      <button
        type={isDefault ? 'submit' : 'button'}
        title={reason}
        aria-disabled={reason !== undefined || isBusy}
        onClick={onClick}
      >
        {label}
        {reason === undefined ? null : <span class="hidden"> ({reason})</span>}
      </button>
      {isConfirming && confirm !== undefined ? (
        <Dialog label={label} onClose={() => setConfirming(false)}>
          <p>{confirm}</p>
          <div class="row">
            <button type="button" class="main" onClick={() => void start()}>
              {label}
            </button>
            <button type="button" onClick={() => setConfirming(false)}>
              Cancel
            </button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

export interface DialogProps {
  readonly label: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ label, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    // The browser returns the focus only when a dialog is closed, not when its element is removed.
    return () => queueMicrotask(() => opener instanceof HTMLElement && opener.focus());
  }, []);
  return (
    <dialog ref={dialog} aria-label={label} onClose={onClose}>
      <h2>{label}</h2>
      {children}
    </dialog>
  );
}

export function Conditions({ object, nowMs }: { readonly object: KubeObject; readonly nowMs: number }) {
  const conditions = conditionsOf(object);
  if (conditions.length === 0) return null;
  return (
    <ShortTable
      label="Conditions"
      columns={['Type', 'Status', 'Reason', 'Message', 'Since']}
      rows={conditions.map(({ type, status, reason, message, since }) => ({
        key: type,
        cells: [type, status, reason, message, ageText(since, nowMs)],
      }))}
    />
  );
}

export function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <section aria-label="Explanation">
      {findings.map(({ severity, title, detail, fix }) => (
        <div key={title} class={`card finding ${severity}`}>
          <p>
            <strong>{sanitizeLines(title)}</strong>
          </p>
          {detail === '' ? null : <pre class="wrap">{sanitizeLines(detail)}</pre>}
          <p>Fix: {fix}</p>
        </div>
      ))}
    </section>
  );
}

/** Shown instead of an object's details while the object is pending or if it does not exist. */
export function Missing({ title, object, error }: { title: string; object: unknown; error: Error | undefined }) {
  return (
    <>
      <h1>{title}</h1>
      {error !== undefined ? (
        <p class="bad">{error.message}</p>
      ) : object === null ? (
        <p>It does not exist, or was deleted.</p>
      ) : (
        <p class="muted">It is being read.</p>
      )}
    </>
  );
}
