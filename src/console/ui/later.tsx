/** A part of a page whose code is loaded when it is shown. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export interface LaterProps<P> {
  /** Function that loads the code. It must be the same function at each rendering. */
  readonly load: () => Promise<{ readonly default: ComponentType<P> }>;
  readonly props: P;
}

export function Later<P extends object>({ load, props }: LaterProps<P>) {
  const [loaded, setLoaded] = useState<{ readonly Content: ComponentType<P> }>();
  const [error, setError] = useState<{ readonly reason: unknown }>();
  useEffect(() => {
    let isShown = true;
    load().then(
      (module) => {
        if (isShown) setLoaded({ Content: module.default });
      },
      (reason: unknown) => {
        if (isShown) setError({ reason });
      },
    );
    return () => {
      isShown = false;
    };
  }, [load]);
  // The error boundary of the view shows the error.
  if (error !== undefined) throw error.reason;
  if (loaded === undefined) return <p class="muted">It is being read.</p>;
  const { Content } = loaded;
  return <Content {...props} />;
}
