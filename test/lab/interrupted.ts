/** A test run that is interrupted, or ended for taking too long, takes its hosts away too. */
export function stopWhenInterrupted(host: { stop(): Promise<void> }): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      void host.stop().finally(() => process.exit(1));
    });
  }
}
