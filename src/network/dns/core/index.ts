/** Cluster DNS: the zone of a cluster, and the encoding of messages. */
export {
  CLASSIC_UDP_BYTES,
  type Edns,
  FLAG,
  HEADER_BYTES,
  parseQuery,
  type Query,
  questionName,
} from './query.ts';
export { CLASS_IN, type DnsRecord, fitsOnTheWire, isBelow, RCODE, type RecordType, TYPE } from './records.ts';
export { parseResponse, type ResponseShape } from './response.ts';
export { isHeadless } from './service-records.ts';
export { ClusterZone, type ZoneAnswer, type ZoneOptions } from './zone.ts';
