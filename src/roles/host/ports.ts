/** Ports are tried before anything is made, so that a conflict is one clear line and not a component that keeps restarting. */
import { createServer } from 'node:net';
import { CodedError } from '../../base/errors.ts';

export interface WantedPort {
  readonly address: string;
  readonly port: number;
  /** Field of the bootstrap file that moves it. */
  readonly field: string;
  readonly what: string;
}

/** Throws CodedError 'address-in-use' naming the port, what wants it and how to move it. */
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
