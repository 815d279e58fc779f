/** Resource records and their names. Names are lower case without the final dot; the root is ''. Source: RFC 1035. */

interface Common {
  readonly name: string;
  /** Time to live in seconds. */
  readonly ttl: number;
}

export type DnsRecord =
  | (Common & { readonly type: 'A' | 'AAAA'; readonly data: string })
  | (Common & { readonly type: 'CNAME' | 'PTR' | 'NS'; readonly data: string })
  | (Common & { readonly type: 'TXT'; readonly data: string })
  | (Common & { readonly type: 'HINFO'; readonly data: { readonly cpu: string; readonly os: string } })
  | (Common & {
      readonly type: 'SRV';
      readonly data: {
        readonly priority: number;
        readonly weight: number;
        readonly port: number;
        readonly target: string;
      };
    })
  | (Common & { readonly type: 'SOA'; readonly data: StartOfAuthority });

export interface StartOfAuthority {
  readonly mname: string;
  readonly rname: string;
  readonly serial: number;
  readonly refresh: number;
  readonly retry: number;
  readonly expire: number;
  readonly minimum: number;
}

export type RecordType = DnsRecord['type'];

/** Codes of query types. Source: IANA, DNS parameters. */
export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;

export const CLASS_IN = 1;

export const RCODE = { noError: 0, formErr: 1, servFail: 2, nxDomain: 3, notImp: 4, refused: 5, badVers: 16 } as const;

const MAX_LABEL = 63;
/** Maximum length of an encoded name, including the length bytes of all labels and the root. */
const MAX_NAME = 255;

/** Whether the name can be encoded. Objects in the API may contain longer labels. */
export function fitsOnTheWire(name: string): boolean {
  return name.length + 2 <= MAX_NAME && name.split('.').every(({ length }) => length > 0 && length <= MAX_LABEL);
}

/** Whether `name` is `zone` or a name below it. */
export function isBelow(name: string, zone: string): boolean {
  return name === zone || zone === '' || name.endsWith(`.${zone}`);
}
