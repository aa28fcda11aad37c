import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams, exactly once. Of six ways the fastest: a session's open chunk is one value, and the
 * store's cache takes the rewrites between two commits.
 *
 * <p>Arguments: bootstrap, records topic, chunks topic, application id, commit interval in seconds,
 * state directory.
 */
public class Chunker {
  static final int MAX_TOKENS = 5000;
  static final String STORE = "open";

  /** A quarter of the characters of UTF-8, rounded up, and at least 1. */
  static int tokensOf(byte[] line) {
    int characters = 0;
    for (byte each : line) {
      characters += each > (byte) 0xBF ? 1 : 0; // all but continuation bytes
    }
    return Math.max(1, (characters + 3) / 4);
  }

  /** A value is t, tokens, and the lines joined by a comma. */
  static class Chunking implements Processor<byte[], byte[], byte[], byte[]> {
    static final int HEAD_BYTES = 8;
    ProcessorContext<byte[], byte[]> context;
    KeyValueStore<byte[], byte[]> store;

    @Override
    public void init(ProcessorContext<byte[], byte[]> given) {
      context = given;
      store = given.getStateStore(STORE);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      byte[] line = record.value();
      byte[] held = store.get(record.key());
      int tokens = tokensOf(line);
      if (held == null) {
        store.put(record.key(), opened(1, tokens, line));
        return;
      }
      ByteBuffer head = ByteBuffer.wrap(held);
      int t = head.getInt();
      int sum = head.getInt() + tokens;
      if (sum > MAX_TOKENS) {
        context.forward(record.withValue(chunkOf(record.key(), t, held)));
        store.put(record.key(), opened(t + 1, tokens, line));
        return;
      }
      byte[] longer = Arrays.copyOf(held, held.length + 1 + line.length);
      longer[held.length] = ',';
      System.arraycopy(line, 0, longer, held.length + 1, line.length);
      ByteBuffer.wrap(longer).putInt(t).putInt(sum);
      store.put(record.key(), longer);
    }

    static byte[] opened(int t, int tokens, byte[] line) {
      return ByteBuffer.allocate(HEAD_BYTES + line.length).putInt(t).putInt(tokens).put(line).array();
    }

    static byte[] chunkOf(byte[] key, int t, byte[] held) {
      String session = new String(key, StandardCharsets.UTF_8); // made names need no escapes
      byte[] head =
          ("{\"session\":\"" + session + "\",\"t\":" + t + ",\"records\":[")
              .getBytes(StandardCharsets.UTF_8);
      int linesBytes = held.length - HEAD_BYTES;
      return ByteBuffer.allocate(head.length + linesBytes + 2)
          .put(head)
          .put(held, HEAD_BYTES, linesBytes)
          .put((byte) ']')
          .put((byte) '}')
          .array();
    }
  }

  static Topology topology(String records, String chunks) {
    var stored =
        Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore(STORE), Serdes.ByteArray(), Serdes.ByteArray())
            .withLoggingEnabled(Map.of())
            .withCachingEnabled();
    var bytes = new ByteArrayDeserializer();
    var raw = new ByteArraySerializer();
    ProcessorSupplier<byte[], byte[], byte[], byte[]> chunking = Chunking::new;
    return new Topology()
        .addSource("records", bytes, bytes, records)
        .addProcessor("chunking", chunking, "records")
        .addStateStore(stored, "chunking")
        .addSink("chunks", chunks, raw, raw, "chunking");
  }

  static Properties properties(String[] arguments) {
    var to = new Properties();
    to.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    to.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[3]);
    to.put(
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, Math.round(Double.parseDouble(arguments[4]) * 1e3));
    to.put(StreamsConfig.STATE_DIR_CONFIG, arguments[5]);
    to.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    to.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
    to.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 64L << 20);
    to.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 5000);
    to.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    to.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_RECORDS_CONFIG), 5000);
    to.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG), 4 << 20);
    to.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), 512 << 10);
    to.put(StreamsConfig.producerPrefix(ProducerConfig.BUFFER_MEMORY_CONFIG), 128L << 20);
    to.put(StreamsConfig.producerPrefix(ProducerConfig.MAX_REQUEST_SIZE_CONFIG), 8 << 20);
    return to;
  }

  public static void main(String[] arguments) throws InterruptedException {
    var streams = new KafkaStreams(topology(arguments[1], arguments[2]), properties(arguments));
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    streams.start();
    new CountDownLatch(1).await();
  }
}
