/** The built-in client: `hyperedge get`, `hyperedge kubectl get`, or a link named `kubectl`. */

/** Runs the verb in `argv` and resolves with the exit code. `program` is the name in messages. Never rejects. */
export async function runClient(argv: readonly string[], program: string): Promise<number> {
  const { runBuiltInClient } = await import('../../host/kubectl/client.ts');
  return runBuiltInClient(argv, program);
}
