/**
 * Checks ports before the start, so that a conflict is reported as one error instead of a component that restarts
 * repeatedly.
 */
import { createServer } from 'node:net';
import { CodedError } from '../../base/errors.ts';

export interface WantedPort {
  readonly address: string;
  readonly port: number;
  /** The bootstrap field that sets the port. */
  readonly field: string;
  readonly what: string;
}

/** Throws CodedError 'address-in-use' with the port, its component and the field to set. */
export async function checkPort(wanted: WantedPort): Promise<void> {
  const { address, port, field, what } = wanted;
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new CodedError(
              'address-in-use',
              `port ${port} for ${what} is in use; free it or set ${field} in bootstrap.yaml`,
            )
          : new CodedError('listen', `cannot listen on ${address}:${port} for ${what}: ${error.message}`),
      );
    });
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
