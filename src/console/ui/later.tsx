/** A part of a page whose code is loaded when it is shown. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { showFailure } from '../shell/toasts.tsx';

export interface LaterProps<P> {
  /** The same function for each rendering. */
  readonly load: () => Promise<{ readonly default: ComponentType<P> }>;
  readonly props: P;
}

export function Later<P extends object>({ load, props }: LaterProps<P>) {
  const [loaded, setLoaded] = useState<{ readonly Content: ComponentType<P> }>();
  useEffect(() => {
    let isShown = true;
    load().then((module) => {
      if (isShown) setLoaded({ Content: module.default });
    }, showFailure);
    return () => {
      isShown = false;
    };
  }, [load]);
  if (loaded === undefined) return <p class="muted">It is being read.</p>;
  const { Content } = loaded;
  return <Content {...props} />;
}
