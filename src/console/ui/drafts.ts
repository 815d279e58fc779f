/**
 * Texts that were typed into an editor and not applied, by the address of the editor's view. They are kept in memory
 * while the tab is open, so that leaving a view, for example with the Back button of a phone, loses nothing.
 */
import type { KubeObject } from '../../api/meta/object.ts';
import { sessionState } from '../session/login.ts';

export interface Draft {
  readonly text: string;
  /** The object on which the text is based; undefined for new objects. */
  readonly base: KubeObject | undefined;
}

/** Maximum number of kept texts; the oldest is dropped first. */
const MAX_DRAFTS = 20;

const drafts = new Map<string, Draft>();
/** Open editors; each returns whether its text has unsaved changes. */
const open = new Set<() => boolean>();

export const draftOf = (key: string): Draft | undefined => drafts.get(key);

export const dropDraft = (key: string): void => void drafts.delete(key);

export function keepDraft(key: string, draft: Draft): void {
  // After a logout, nothing of the user's work stays in the tab.
  if (sessionState.value === 'out') return;
  drafts.delete(key);
  drafts.set(key, draft);
  const [oldest] = drafts.keys();
  if (drafts.size > MAX_DRAFTS && oldest !== undefined) drafts.delete(oldest);
}

/** Registers an open editor until the returned function is called. */
export function addEditor(hasChanges: () => boolean): () => void {
  open.add(hasChanges);
  return () => void open.delete(hasChanges);
}

sessionState.subscribe((state) => {
  if (state === 'out') drafts.clear();
});

// The browser warns the user before it closes or reloads a tab with unsaved changes.
addEventListener('beforeunload', (event) => {
  if (drafts.size > 0 || [...open].some((hasChanges) => hasChanges())) event.preventDefault();
});
