/** Applies the pods' nftables tables, one per address family, and finds changes that another program made to them. */
import type { ReservedPort } from '../../../../api/kinds/nodes/nodes/host-ports.ts';
import type { Network } from '../../../../base/addresses/networks.ts';
import { ignore, messageOf } from '../../../../base/errors.ts';
import { ownTransaction } from '../../../../base/linux/nftables-mark.ts';
import type { Log } from '../../../../base/log.ts';
import { command } from '../command.ts';
import { type PodPorts, podTable } from './filter.ts';

type Family = Network['family'];

export interface FilterTablesOptions {
  readonly nft: string;
  readonly table: string;
  readonly clusterCidrs: readonly string[];
  readonly serviceCidrs: readonly string[];
  readonly reservedPorts: () => readonly ReservedPort[];
  /** Pod ranges and pods at the time of the call. */
  readonly state: () => { readonly ranges: readonly Network[]; readonly pods: readonly PodPorts[] };
  readonly log: Log;
}

const MAX_LISTING = 16 * 1024 * 1024;

export class FilterTables {
  readonly #options: FilterTablesOptions;
  /** Serializes changes of the tables, each of which applies the newest state. */
  #applying: Promise<void> = Promise.resolve();
  /** Families without a packet filter on this host. */
  readonly #unsupported = new Set<Family>();
  /** Listing of each family's table after it was applied. A different listing shows a foreign change. */
  readonly #listings = new Map<Family, string>();

  constructor(options: FilterTablesOptions) {
    this.#options = options;
  }

  isSupported(family: Family): boolean {
    return !this.#unsupported.has(family);
  }

  /** Applies the tables of all families. The first failure rejects. */
  apply(): Promise<void> {
    return this.#applyWith((_family, error) => {
      throw error;
    });
  }

  /** Applies the tables of all families. A family whose table fails is not supported from now on. */
  applySupported(): Promise<void> {
    return this.#applyWith((family, error) => {
      this.#unsupported.add(family);
      this.#options.log.warn(
        'packet filter not applied; pods reach only networks that route pod addresses, and host ports are closed',
        { family, error: messageOf(error) },
      );
    });
  }

  /** Whether another program has changed the table since it was applied. */
  async isChanged(family: Family): Promise<boolean> {
    return this.isSupported(family) && (await this.#listing(family)) !== this.#listings.get(family);
  }

  /** Removes the tables of the families. Failures are logged. */
  async remove(families: readonly Family[]): Promise<void> {
    for (const family of families.filter((each) => this.isSupported(each))) {
      const table = `table ${nftFamily(family)} ${this.#options.table}`;
      await this.#run(`add ${table}\ndelete ${table}\n`).catch((error: unknown) =>
        this.#options.log.v(2, 'table not removed', { table, error: messageOf(error) }),
      );
    }
  }

  #applyWith(onError: (family: Family, error: unknown) => void): Promise<void> {
    const next = this.#applying.then(async () => {
      const { state, reservedPorts } = this.#options;
      for (const range of state().ranges) {
        if (!this.isSupported(range.family)) continue;
        const text = podTable({ ...this.#options, reservedPorts: reservedPorts() }, range, state().pods);
        try {
          await this.#run(text);
          this.#listings.set(range.family, (await this.#listing(range.family)) ?? '');
        } catch (error) {
          onError(range.family, error);
        }
      }
    });
    this.#applying = next.catch(ignore('the caller gets the error'));
    return next;
  }

  #run(text: string): Promise<string> {
    return command(this.#options.nft, ['-f', '-'], ownTransaction(text));
  }

  /** Listing of the family's table; undefined if the table does not exist. */
  async #listing(family: Family): Promise<string | undefined> {
    const { nft, table } = this.#options;
    const args = ['-s', 'list', 'table', nftFamily(family), table];
    return command(nft, args, '', MAX_LISTING).catch((error: unknown) =>
      // After any other failure the state of the table is unknown, so it counts as unchanged.
      /No such file or directory/.test(messageOf(error)) ? undefined : this.#listings.get(family),
    );
  }
}

const nftFamily = (family: Family): string => (family === 4 ? 'ip' : 'ip6');
