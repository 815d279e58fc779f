import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Kubelet } from '../../kubelet/index.ts';

export interface RestartableKubelet extends Kubelet {
  /** Replaces the kubelet by a new one with the current configuration. The pods continue to run. */
  restart(): Promise<void>;
}

type StopOptions = NonNullable<Parameters<Kubelet['stop']>[0]>;

const RETRY_MS = 2_000;

/** `make`: creates a kubelet. It throws if the configuration is invalid; then the running kubelet remains. */
export async function restartableKubelet(
  make: (isFirst: boolean) => Promise<Kubelet>,
  hostLog: Log,
): Promise<RestartableKubelet> {
  const log = hostLog.named('kubelet');
  const ready = Promise.withResolvers<void>();
  let isFirst = true;
  const adopt = async (): Promise<Kubelet> => {
    const next = await make(isFirst);
    isFirst = false;
    void next.nodeReady.then(() => ready.resolve());
    return next;
  };
  let current = await adopt();
  let stopping: StopOptions | undefined;
  const woken = Promise.withResolvers<void>();
  let changing: Promise<void> = Promise.resolve();
  /** Waits before the next attempt, or until the kubelet is to stop. */
  const pause = async (): Promise<void> => {
    const elapsed = Promise.withResolvers<void>();
    const timer = setTimeout(elapsed.resolve, RETRY_MS);
    await Promise.race([elapsed.promise, woken.promise]);
    clearTimeout(timer);
  };
  /**
   * Starts a kubelet. The previous one has stopped, so after a failure new kubelets are tried until one starts. A stop
   * that ends the pods makes one more attempt, because a kubelet knows the pods only after its start.
   */
  const start = async (first: Kubelet): Promise<void> => {
    let next: Kubelet | undefined = first;
    while (stopping === undefined || stopping.stopPods === true) {
      const isLast = stopping !== undefined;
      try {
        current = next ?? (await adopt());
        return await current.start();
      } catch (error) {
        if (isLast) log.error('kubelet not started; its pods keep running', { error: messageOf(error) });
        else log.error('kubelet not started again; retrying', { error: messageOf(error), retryMs: RETRY_MS });
        next = undefined;
        await current.stop();
        if (isLast) return;
        await pause();
      }
    }
  };
  const replace = async (): Promise<void> => {
    if (stopping !== undefined) return;
    const next = await adopt();
    // The running kubelet knows the pods that a stop may have to end.
    if (stopping !== undefined) return;
    await current.stop();
    await start(next);
    if (stopping === undefined) log.info('kubelet restarted with its new configuration');
  };
  return {
    get port() {
      return current.port;
    },
    nodeReady: ready.promise,
    get isNodeReady() {
      return current.isNodeReady;
    },
    start: () => current.start(),
    forgetBackOff: (uid) => current.forgetBackOff(uid),
    report: () => current.report(),
    addressesChanged: () => current.addressesChanged(),
    // Waits for a restart in progress. A kubelet that is being created reads the newest certificate itself.
    reloadCertificate: () => changing.then(() => current.reloadCertificate()),
    restart() {
      const done = changing.then(replace);
      changing = done.catch(ignore('the caller of the restart gets its error'));
      return done;
    },
    async stop(options) {
      stopping = options ?? {};
      woken.resolve();
      await changing;
      await current.stop(options);
    },
  };
}
