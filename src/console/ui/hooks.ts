/** Hooks that provide views with live data and rights. */
import { useEffect, useState } from 'preact/hooks';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { AccessDecision, AccessRequest } from '../data/api/access.ts';
import type { Snapshot } from '../data/watch/feed.ts';
import type { FeedScope } from '../data/watch/pool.ts';
import { serverClock } from '../session/clock.ts';
import { access, feedPool } from './context.ts';

const EMPTY: Snapshot<never> = { items: [], state: 'loading', error: undefined, version: 0 };

/** A live collection, watched while the view is shown. If `type` is undefined, nothing is watched. */
export function useFeed<T extends KubeObject>(type: ResourceType<T> | undefined, scope: FeedScope = {}): Snapshot<T> {
  const [snapshot, setSnapshot] = useState<Snapshot<T>>(EMPTY);
  const { namespace, labelSelector, fieldSelector } = scope;
  useEffect(() => {
    if (type === undefined) return;
    const { feed, release } = feedPool.acquire(type, { namespace, labelSelector, fieldSelector });
    setSnapshot(feed.snapshot());
    const end = feed.subscribe(setSnapshot);
    return () => {
      end();
      release();
    };
  }, [type, namespace, labelSelector, fieldSelector]);
  return snapshot;
}

/** A live object; undefined while it is pending, `null` if it does not exist. */
export function useObject<T extends KubeObject>(
  type: ResourceType<T>,
  name: string,
  namespace?: string,
): { readonly object: T | undefined | null; readonly snapshot: Snapshot<T> } {
  const snapshot = useFeed(type, { namespace, fieldSelector: `metadata.name=${name}` });
  const [found] = snapshot.items;
  const isKnown = snapshot.version > 0 || isApiError(snapshot.error, 'NotFound');
  return { object: found ?? (isKnown ? null : undefined), snapshot };
}

/** Current time of the server, updated every `everyMs`; used for ages. */
export function useNow(everyMs = 10_000): number {
  const [nowMs, setNowMs] = useState(serverClock.nowMs());
  useEffect(() => {
    const id = setInterval(() => setNowMs(serverClock.nowMs()), everyMs);
    return () => clearInterval(id);
  }, [everyMs]);
  return nowMs;
}

const PENDING: AccessDecision = { allowed: false, reason: 'Your rights are being checked.' };

export function useAccess(question: AccessRequest): AccessDecision {
  const [decision, setDecision] = useState<AccessDecision>(PENDING);
  const { verb, group, resource, subresource, namespace, name } = question;
  useEffect(() => {
    let isCurrent = true;
    void access.check({ verb, group, resource, subresource, namespace, name }).then((each) => {
      if (isCurrent) setDecision(each);
    });
    return () => {
      isCurrent = false;
    };
  }, [verb, group, resource, subresource, namespace, name]);
  return decision;
}

/** Result of a request that is repeated every `everyMs` while the page is visible. `key` identifies the request. */
export function usePoll<T>(read: (signal: AbortSignal) => Promise<T>, everyMs: number, key: string): T | undefined {
  const [value, setValue] = useState<T>();
  useEffect(() => {
    const ended = new AbortController();
    const once = (): void => {
      if (document.visibilityState === 'hidden') return;
      read(ended.signal).then(
        (next) => {
          if (!ended.signal.aborted) setValue(next);
        },
        () => undefined,
      );
    };
    once();
    const id = setInterval(once, everyMs);
    return () => {
      ended.abort();
      clearInterval(id);
    };
  }, [key, everyMs]);
  return value;
}
